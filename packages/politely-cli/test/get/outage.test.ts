import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { startRedisProcess } from "../../../politely/test/servers/redisProcess.js";
import { startGet } from "./child.js";
import { Place } from "./place.js";
import { pages, startSite } from "./site.js";

const COUNT = 160;
const policy = { hosts: { "127.0.0.1": { rate: "40/s", burst: 5 } } };
const keeps = ["--appendonly", "yes", "--appendfsync", "always"];

/** What the site was asked for more than once. */
function askedAgain(counts: ReadonlyMap<string, number>): readonly string[] {
  return [...counts].filter(([, times]) => times > 1).map(([path]) => path);
}

// Side by side, since most of their time is waiting.
describe.concurrent("a list whose Redis goes away", () => {
  for (const [what, args, workers] of [
    ["that keeps what it was told", keeps, ["a"]],
    ["that keeps what it was told, with two machines", keeps, ["a", "b"]],
    ["that forgets everything", [], ["a"]],
  ] as const) {
    it(`goes on by itself when Redis is killed and started again, one ${what}`, async () => {
      await using server = await startRedisProcess({ args });
      using place = new Place();
      await using site = await startSite({ delayMs: 20 });
      place.file("list.txt", pages(site, COUNT).join("\n"));
      place.file("politely.json", JSON.stringify(policy));
      // A lease that ends while the server is away: the others are not dead for that.
      const shared = ["--share", server.url, "--lease", "1s", "--no-robots"];
      const runs = workers.map((out) => startGet(place.path, ["list.txt", "-o", out, ...shared]));
      await site.until(40);
      await server.kill9();
      await delay(2_000);
      await server.restart();
      const ended = await Promise.all(runs.map((run) => run.ended));
      expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(workers.map(() => ({ code: 0, stderr: "" })));
      expect(site.counts().size).toBe(COUNT);
      expect(askedAgain(site.counts())).toEqual([]);
      const lines = workers.flatMap((out) => place.index(out));
      expect(lines).toHaveLength(COUNT);
      expect(lines.every(({ outcome }) => outcome === "fetched")).toBe(true);
    });
  }

  it("keeps in the index what it fetched while Redis was away, though it is killed before that is back", async () => {
    await using server = await startRedisProcess({ args: keeps });
    using place = new Place();
    await using site = await startSite({ delayMs: 20 });
    place.file("list.txt", pages(site, COUNT).join("\n"));
    place.file("politely.json", JSON.stringify(policy));
    const args = ["list.txt", "-o", "out", "--share", server.url, "--lease", "1s", "--no-robots"];
    const first = startGet(place.path, args);
    await site.until(40);
    await server.kill9();
    await delay(1_000);
    const before = site.seen.length;
    first.child.kill("SIGKILL");
    await first.ended;
    // All but what was in flight, or ended in the last moment.
    expect(place.index().length).toBeGreaterThan(before - 10);
    const finished = new Set(place.index().map(({ url }) => new URL(url).pathname));
    await server.restart();
    expect(await startGet(place.path, args).ended).toMatchObject({ code: 0, stderr: "" });
    expect(askedAgain(site.counts()).filter((path) => finished.has(path))).toEqual([]);
    expect(site.counts().size).toBe(COUNT);
  });
});
