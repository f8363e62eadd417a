import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { localSite } from "../fetch/localSite.js";
import { type CompiledRegister, compileRegister } from "./register/compileRegister.js";
import { type Ended, type Run, runProgram } from "./register/runProgram.js";

const HERE = "127.0.0.2";
const THERE = "127.0.0.3";
const oneAtATime = { hosts: { [HERE]: { concurrency: 1 }, [THERE]: { concurrency: 1 } } };

let compiled: CompiledRegister | undefined;
beforeAll(async () => {
  compiled = await compileRegister();
}, 60_000);
afterAll(() => compiled?.remove());

function run(program: string, args: readonly string[], more: Partial<Run> = {}): Promise<Ended> {
  return runProgram({ register: compiled?.url ?? "", program, args, policy: oneAtATime, ...more });
}

/** A site that takes its time, so that requests which could overlap do. */
function slowSite(address: string) {
  return localSite(address, (_request, response) => {
    setTimeout(() => response.end("page"), 20);
  });
}

describe("node --import politely/register", () => {
  it("paces the global fetch of an unchanged program and tells at exit what it saw", async () => {
    await using here = await slowSite(HERE);
    await using there = await slowSite(THERE);
    const urls = [here, here, here, there, there].map(({ origin }, index) => `${origin}/${index}`);
    const { code, stdout, stderr } = await run("fetches.mjs", urls);
    expect([code, stdout]).toEqual([0, "200 200 200 200 200\n"]);
    expect([here.seen.length, here.peak, there.seen.length, there.peak]).toEqual([3, 1, 2, 1]);
    expect(stderr).toMatch(
      /^politely: 5 requests to 2 hosts paced \(policy politely\.json\), waited 0\.\d s in all\n$/,
    );
  });

  it("paces the rate, not only the number at once", async () => {
    await using site = await slowSite(HERE);
    const policy = { hosts: { [HERE]: { minDelay: 100 } } };
    const { stderr } = await run("fetches.mjs", [site.origin, site.origin, site.origin], { policy });
    // The second waits for at least 100 ms, the third for 200.
    const [, waitedSec] = /3 requests to 1 host paced .* waited ([\d.]+) s in all/.exec(stderr) ?? [];
    expect(Number(waitedSec)).toBeGreaterThanOrEqual(0.3);
  });

  it("paces undici's own functions in CommonJS", async () => {
    await using site = await slowSite(HERE);
    const { code, stdout, lines } = await run("requests.cjs", [site.origin, site.origin, site.origin]);
    expect([code, stdout, site.peak]).toEqual([0, "page page page\n", 1]);
    expect(lines).toEqual([expect.stringContaining("3 requests to 1 host paced")]);
  });

  it("paces a dispatcher that the program makes global later, or gives to one fetch", async () => {
    await using site = await slowSite(HERE);
    const { code, stdout, stderr } = await run("replaces.mjs", [site.origin]);
    expect([code, stdout]).toEqual([0, "page page page page page page page page\n"]);
    expect([site.seen.length, site.peak]).toEqual([9, 1]);
    expect(stderr).toMatch(
      /^politely: 8 requests to 1 host paced \([^)]*\), waited \d\.\d s in all; not covered: 1 request through undici [^,]*\n$/,
    );
  });

  it("leaves the program its own undici's global dispatcher to build on", async () => {
    await using site = await slowSite(HERE);
    const { code, stdout, lines } = await run("composes.mjs", [site.origin]);
    expect([code, stdout, site.peak]).toEqual([0, "true page page page\n", 1]);
    expect(lines).toEqual([expect.stringContaining("3 requests to 1 host paced")]);
  });

  it("gets all through when nobody reads the bodies", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("x".repeat(10_000)));
    const policy = { hosts: { [HERE]: { concurrency: 4 } } };
    const urls = Array.from({ length: 20 }, () => site.origin);
    const { code, stdout } = await run("fetches.mjs", urls, { policy });
    expect([code, stdout.split(" ").length]).toEqual([0, 20]);
    expect(site.peak).toBeLessThanOrEqual(4);
  });

  it("obeys robots.txt when the policy says so, without waiting for itself", async () => {
    await using site = await localSite(HERE, (request, response) => {
      response.end(request.url === "/robots.txt" ? "User-agent: *\nDisallow: /private" : "page");
    });
    const policy = { ...oneAtATime, http: { userAgent: "Archive/1.0", robots: true } };
    const allowed = await run("fetches.mjs", [`${site.origin}/a`, `${site.origin}/b`], { policy });
    expect([allowed.code, site.seen.map(({ url }) => url)]).toEqual([0, ["/robots.txt", "/a", "/b"]]);
    expect(allowed.lines).toEqual([expect.stringMatching(/^politely: 3 requests to 1 host paced [^;]*$/)]);
    const { code, stderr } = await run("fetches.mjs", [`${site.origin}/private`], { policy });
    expect([code, site.seen.at(-1)?.url]).toEqual([1, "/robots.txt"]);
    expect(stderr).toContain("RobotsError");
  });

  it("counts answers that said too many requests, and what the policy refused", async () => {
    await using site = await localSite(HERE, (_request, response) => response.writeHead(429).end());
    const policy = { hosts: { [HERE]: { concurrency: 1, maxWait: 5_000, cooldown: "1h" } } };
    const { code, stderr } = await run("fetches.mjs", [site.origin, site.origin], { policy });
    expect(code).toBe(1);
    expect(stderr).toContain("DeadlineError");
    expect(stderr).toMatch(
      /1 request to 1 host paced .*, 1 answer said "too many requests", 1 refused by the policy\n/,
    );
  });

  it("paces node:http of an unchanged program, by whichever import it came", async () => {
    await using here = await slowSite(HERE);
    await using there = await slowSite(THERE);
    const { code, stdout, lines } = await run("nodeHttp.mjs", [here.origin, there.origin]);
    expect([code, stdout]).toEqual([0, "page page page page\n"]);
    expect([here.seen.length, here.peak, there.seen.length, there.peak]).toEqual([3, 1, 1, 1]);
    expect(lines).toEqual([expect.stringMatching(/^politely: 4 requests to 2 hosts paced [^;]*$/)]);
  });

  it("tells what it cannot cover", async () => {
    await using site = await slowSite(HERE);
    await using local = await slowSite("127.0.0.1");
    const { code, lines } = await run("uncovered.mjs", [site.origin, local.origin]);
    expect(code).toBe(0);
    expect(lines).toEqual([
      "politely: 3 requests to 1 host paced (policy politely.json), waited 0.0 s in all; not covered: " +
        "1 request through node:http without an agent, " +
        "1 request through undici dispatchers of the program's own, 2 requests to this machine (localhost is exempt)",
    ]);
  });

  it("tells of a global dispatcher that it could not see coming", async () => {
    await using site = await slowSite(HERE);
    const { lines } = await run("assigns.mjs", [site.origin]);
    expect(lines).toEqual([
      "politely: no requests paced (policy politely.json); not covered: 1 request through undici dispatchers of the " +
        "program's own, what went through another global dispatcher that the program has set",
    ]);
  });

  it("paces by presets and the default policy when there is no file", async () => {
    await using site = await slowSite(HERE);
    const { code, lines } = await runProgram({
      register: compiled?.url ?? "",
      program: "fetches.mjs",
      args: [site.origin],
    });
    expect([code, lines]).toEqual([
      0,
      [
        "politely: no requests paced (presets and 1/s, no politely.json found); " +
          "not covered: 1 request to this machine (localhost is exempt)",
      ],
    ]);
  });
});

describe("the program that is registered", () => {
  it("keeps its exit code and its error message", async () => {
    await using site = await slowSite(HERE);
    const { code, stderr, lines } = await run("throws.mjs", [site.origin]);
    expect(code).toBe(1);
    expect(stderr).toContain("Error: the program's own mistake");
    expect(lines).toEqual([expect.stringContaining("1 request to 1 host paced")]);
  });

  it("may leave by process.exit while requests wait", async () => {
    await using site = await localSite(HERE, (_request, response, index) => {
      if (index === 0) response.end("page");
    });
    const { code, lines } = await run("exits.mjs", [site.origin]);
    expect(code).toBe(3);
    expect(lines).toEqual([
      expect.stringMatching(/^politely: 2 requests to 1 host paced .*, 2 still waiting at the end$/),
    ]);
  });

  it("has a limiter in each worker, which says so", async () => {
    await using site = await slowSite(HERE);
    const { code, lines } = await run("workers.mjs", [site.origin]);
    expect([code, site.seen.length]).toEqual([0, 2]);
    expect(lines).toEqual([
      expect.stringMatching(/^politely \(worker 1, which has a limiter of its own\): 1 request to 1 host paced/),
      expect.stringMatching(/^politely: 1 request to 1 host paced/),
    ]);
  });

  it("is let alone on stderr with POLITELY_QUIET=1", async () => {
    await using site = await slowSite(HERE);
    const { code, stderr } = await run("fetches.mjs", [site.origin], { env: { POLITELY_QUIET: "1" } });
    expect([code, stderr, site.seen.length]).toEqual([0, "", 1]);
  });
});

describe("a policy that cannot be used", () => {
  it("keeps the program from starting, with everything that is wrong", async () => {
    await using site = await slowSite(HERE);
    const policy = { default: { rate: "fast" }, hosts: { "x.org": { concurency: 2 } } };
    const { code, stdout, stderr } = await run("fetches.mjs", [site.origin], { policy });
    expect([code, stdout, site.seen.length]).toEqual([1, "", 0]);
    expect(stderr).toMatch(
      /^politely: politely\.json has 2 problems:\n {2}default\.rate: .*\n {2}hosts\["x\.org"\].*\n/,
    );
    expect(stderr).toMatch(/\nThe program was not started, since it would not have been paced\.\n$/);
  });

  it("is told of by its line and column when it is no JSON", async () => {
    const { code, stderr } = await run("fetches.mjs", [], { policy: '{\n  "default": }' });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^politely: politely\.json has a problem:\n {2}\(policy\): must be JSON, .* line 2, column 14/,
    );
  });

  it("is told of when POLITELY_POLICY names a file that is missing", async () => {
    const { code, stderr } = await run("fetches.mjs", [], { env: { POLITELY_POLICY: "mine.json" } });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^politely: mine\.json, which POLITELY_POLICY names, cannot be read: there is no such file\nThe program was not/,
    );
  });
});
