import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { Place } from "../../get/place.js";
import { type Seen, startSite } from "../../get/site.js";
import { startServe } from "../serveProcess.js";

const run = promisify(execFile);
const folder = fileURLToPath(new URL("../../../../../examples/clients/", import.meta.url));

/** How each client is started. */
const CLIENTS: Readonly<Record<string, readonly string[]>> = {
  shell: ["sh", "polite.sh"],
  Python: ["python3", "polite.py"],
  Ruby: ["ruby", "polite.rb"],
  PHP: ["php", "polite.php"],
  Go: ["go", "run", "polite.go"],
};

/** The most arrivals within `spanMs` of each other. */
function most(seen: readonly Seen[], spanMs: number): number {
  return Math.max(...seen.map(({ atMs }, i) => seen.slice(i).filter((each) => each.atMs - atMs < spanMs).length));
}

it("keeps five programs in five languages to one limit, and holds all of them when one hears a 429", async () => {
  using place = new Place();
  let refusedAtMs = 0;
  await using site = await startSite({
    answer(request, response) {
      if (request.url !== "/Ruby/2" || refusedAtMs > 0) return undefined;
      refusedAtMs = performance.now();
      response.writeHead(429, { "retry-after": "2" }).end();
      return true;
    },
  });
  place.file("politely.json", JSON.stringify({ hosts: { "127.0.0.1": { minDelay: 50, concurrency: 10 } } }));
  await using service = await startServe(place.path, ["--no-proxy"]);
  const env = { ...process.env, POLITELY_URL: service.url };
  // Compiling takes a while, and is not what is looked at.
  await run("go", ["build", "-o", `${place.path}/polite-go`, "polite.go"], { cwd: folder });
  const outputs = await Promise.all(
    Object.entries(CLIENTS).map(async ([name, [program, ...args]]) => {
      const urls = [0, 1, 2, 3, 4, 5].map((number) => `${site.origin}/${name}/${number}`);
      const [command, rest] = name === "Go" ? [`${place.path}/polite-go`, []] : [program, args];
      const { stdout } = await run(command, [...rest, ...urls], { cwd: folder, env });
      return stdout.trim().split("\n");
    }),
  );
  expect(outputs.flat().sort()).toEqual(
    Object.keys(CLIENTS)
      .flatMap((name) =>
        [0, 1, 2, 3, 4, 5].map((n) => `${name === "Ruby" && n === 2 ? 429 : 200} ${site.origin}/${name}/${n}`),
      )
      .sort(),
  );
  // Each once. On the way to the site a request may catch up with the one before.
  expect(Math.max(...site.counts().values())).toBe(1);
  expect(site.seen).toHaveLength(30);
  expect(most(site.seen, 500)).toBeLessThanOrEqual(12);
  // The 429 was told with the release: until then, and on the way, some may have started.
  const held = site.seen.filter(({ atMs }) => atMs > refusedAtMs + 300 && atMs < refusedAtMs + 1_900);
  expect(held).toEqual([]);
  const stats = await (await fetch(`${service.url}/v1/stats/127.0.0.1`)).json();
  expect(stats).toMatchObject({ total_requests: 30, throttled_requests: 1 });
});
