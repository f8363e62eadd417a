import { expect, it } from "vitest";
import { selfSigned, startOrigin } from "../serve/proxy/origin.js";
import { Place, run } from "./place.js";
import { pages, startSite } from "./site.js";

const policy = { hosts: { "127.0.0.1": { rate: "50/s", burst: 5 } } } as const;

for (const [what, fail, limits] of [
  ["reset", "reset", policy],
  ["answered with 500", "status", policy],
  ["broken off in the middle", "middle", policy],
  ["reset by a host without limits", "reset", { hosts: { "127.0.0.1": { enabled: false } } }],
] as const) {
  it(`asks again for a robots.txt that was ${what} once, and fetches the list`, async () => {
    using place = new Place();
    let asked = 0;
    await using site = await startSite({
      answer(request, response) {
        if (request.url !== "/robots.txt") return false;
        asked += 1;
        if (asked > 1) response.end("User-agent: *\nDisallow: /q\n");
        else if (fail === "reset") request.socket.destroy();
        else if (fail === "status") response.writeHead(500).end("trouble");
        else {
          response.writeHead(200, { "content-length": "100" }).write("User-agent: *\n");
          setTimeout(() => request.socket.destroy(), 20);
        }
        return true;
      },
    });
    const { error, summary } = await run(place, pages(site, 10), { isRobots: true, policy: limits });
    expect(error).toBeUndefined();
    expect(summary).toMatchObject({ fetched: 10 });
    expect(asked).toBe(2);
  });
}

it("asks for robots.txt no oftener than --retry says, and then names what is wrong", async () => {
  using place = new Place();
  let asked = 0;
  await using site = await startSite({
    answer(request, response) {
      if (request.url !== "/robots.txt") return false;
      asked += 1;
      response.writeHead(500).end();
      return true;
    },
  });
  const { error } = await run(place, pages(site, 3), { isRobots: true, policy, retry: 1 });
  expect(asked).toBe(2);
  expect(site.seen).toEqual([]);
  expect(error?.message).toMatch(
    /^3 of 3 were not fetched: \S+ and 2 more \(robots\.txt could not be had: it answered 500\)$/,
  );
});

it("says why a site cannot be reached: refused, unknown, or a certificate nobody vouches for", async () => {
  using place = new Place();
  let refused: string;
  {
    await using site = await startSite();
    refused = site.origin;
  }
  const { error } = await run(place, [`${refused}/x`], { isRobots: true, retry: 0 });
  expect(error?.message).toMatch(/\(robots\.txt could not be had: .*ECONNREFUSED[^,]*\)$/);
  const unknown = await run(place, ["http://nobody.invalid/x"], { isRobots: true, retry: 0, out: "unknown" });
  expect(unknown.error?.message).toMatch(/\(robots\.txt could not be had: .*(ENOTFOUND|EAI_AGAIN)[^,]*\)$/);
  await using secure = await startOrigin(undefined, selfSigned());
  const strange = await run(place, [`${secure.url}/x`], { isRobots: true, retry: 0, out: "strange" });
  expect(strange.error?.message).toMatch(/\(robots\.txt could not be had: .*self.signed certificate[^,]*\)$/i);
});

it("leaves robots.txt be when it is stopped meanwhile", async () => {
  using place = new Place();
  const interrupted = new AbortController();
  await using site = await startSite({
    answer(request) {
      if (request.url !== "/robots.txt") return false;
      request.socket.destroy();
      setTimeout(() => interrupted.abort(), 50);
      return true;
    },
  });
  const begunMs = performance.now();
  const { error } = await run(place, pages(site, 3), { isRobots: true, policy, interrupted: interrupted.signal });
  expect(error?.message).toBe("3 of 3 left; run the same command again to go on.");
  expect(performance.now() - begunMs).toBeLessThan(900);
});

for (const [where, robots, isRobots, asked] of [
  ["not where the policy says that it need not be asked for", false, true, 0],
  ["where the policy says nothing of it", undefined, true, 1],
  ["never with --no-robots, whatever the policy says", true, false, 0],
] as const) {
  it(`asks for robots.txt ${where}`, async () => {
    using place = new Place();
    let count = 0;
    await using site = await startSite({
      answer(request) {
        if (request.url === "/robots.txt") count += 1;
        return false;
      },
    });
    const given = { ...policy, http: robots === undefined ? {} : { robots } };
    await run(place, pages(site, 1), { isRobots, policy: given });
    expect(count).toBe(asked);
  });
}
