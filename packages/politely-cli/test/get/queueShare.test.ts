import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startRedis } from "../../../politely/test/servers/redis.js";
import { startGet } from "./child.js";
import { Place } from "./place.js";
import { pages, startSite } from "./site.js";

/** Where a list is shared. */
interface Ground extends AsyncDisposable {
  addressIn(place: Place): string;
}

const grounds: readonly (readonly [string, () => Promise<Ground>])[] = [
  [
    "Redis",
    async () => {
      const server = await startRedis();
      return { addressIn: () => server.url, [Symbol.asyncDispose]: () => server.stop() };
    },
  ],
  [
    "a SQLite file",
    async () => ({
      addressIn: (place) => join(place.path, "shared.db"),
      [Symbol.asyncDispose]: async () => undefined,
    }),
  ],
];

const limits = (rate: string): string => JSON.stringify({ hosts: { "127.0.0.1": { rate, burst: 1 } } });

// Side by side, since most of their time is waiting.
describe.concurrent.each(grounds)("two workers on %s", (_, open) => {
  it("share the round of --refresh, also when the second comes in the middle of it", async () => {
    await using ground = await open();
    using place = new Place();
    await using site = await startSite();
    place.file("list.txt", pages(site, 100).join("\n"));
    // Slow enough for the second to come before the first has done it all.
    place.file("politely.json", limits("8/s"));
    const list = randomBytes(4).toString("hex");
    const args = ["list.txt", "--no-robots", "--share", ground.addressIn(place), "--list", list, "--refresh"];
    const first = startGet(place.path, [...args, "-o", "a"]);
    await site.until(10);
    const second = startGet(place.path, [...args, "-o", "b"]);
    const ends = await Promise.all([first.ended, second.ended]);
    expect(ends.map(({ code, stderr }) => ({ code, stderr }))).toEqual([
      { code: 0, stderr: "" },
      { code: 0, stderr: "" },
    ]);
    expect(Math.min(place.index("a").length, place.index("b").length)).toBeGreaterThan(0);
    expect(site.seen).toHaveLength(100);
  });

  it("leave each other their URLs although their leases differ", async () => {
    await using ground = await open();
    using place = new Place();
    await using site = await startSite();
    place.file("list.txt", pages(site, 100).join("\n"));
    place.file("politely.json", limits("20/s"));
    const list = randomBytes(4).toString("hex");
    const args = ["list.txt", "--no-robots", "--share", ground.addressIn(place), "--list", list];
    const patient = startGet(place.path, [...args, "-o", "a"]);
    await site.until(5);
    const hasty = startGet(place.path, [...args, "-o", "b", "--lease", "1s"]);
    const ends = await Promise.all([patient.ended, hasty.ended]);
    expect(ends.map(({ code }) => code)).toEqual([0, 0]);
    expect(site.seen).toHaveLength(100);
  });
});
