import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startPostgres } from "../../../politely/test/servers/postgres.js";
import { startRedis } from "../../../politely/test/servers/redis.js";
import { startGet } from "./child.js";
import { Place } from "./place.js";
import { pages, startSite } from "./site.js";

/** Where a list is shared. */
interface Ground extends AsyncDisposable {
  addressIn(place: Place): string;
}

const grounds: Readonly<Record<string, () => Promise<Ground>>> = {
  Redis: async () => {
    const server = await startRedis();
    return { addressIn: () => server.url, [Symbol.asyncDispose]: () => server.stop() };
  },
  PostgreSQL: async () => {
    const server = await startPostgres();
    return { addressIn: () => server.url, [Symbol.asyncDispose]: () => server.stop() };
  },
  "a SQLite file": async () => ({
    addressIn: (place) => join(place.path, "shared.db"),
    [Symbol.asyncDispose]: async () => undefined,
  }),
};

for (const [name, start] of Object.entries(grounds)) {
  it(`splits one list between two processes through ${name}, and takes over from one that is killed`, async () => {
    await using ground = await start();
    using place = new Place();
    await using site = await startSite({ delayMs: 10 });
    const shared = ["--share", ground.addressIn(place), "--no-robots"];
    place.file("list.txt", pages(site, 200).join("\n"));
    place.file("politely.json", JSON.stringify({ hosts: { "127.0.0.1": { rate: "100/s", burst: 10 } } }));

    // Each URL goes to one of the two.
    const list = ["--list", randomBytes(4).toString("hex")];
    const runs = await Promise.all(
      ["a", "b"].map((out) => startGet(place.path, ["list.txt", "-o", out, ...shared, ...list]).ended),
    );
    expect(runs.map(({ code, stderr }) => ({ code, stderr }))).toEqual([
      { code: 0, stderr: "" },
      { code: 0, stderr: "" },
    ]);
    expect(site.seen).toHaveLength(200);
    const [a, b] = ["a", "b"].map((out) => place.index(out).map(({ url }) => url));
    expect(new Set([...a, ...b]).size).toBe(200);
    expect(Math.min(a.length, b.length)).toBeGreaterThan(0);

    // A third comes late, and finds nothing to do.
    const late = await startGet(place.path, ["list.txt", "-o", "late", ...shared, ...list]).ended;
    expect({ code: late.code, asked: site.seen.length }).toEqual({ code: 0, asked: 200 });

    // One of two is killed: the other ends all of it.
    const other = ["--list", randomBytes(4).toString("hex"), "--lease", "1s"];
    const doomed = startGet(place.path, ["list.txt", "-o", "doomed", ...shared, ...other]);
    await site.until(240);
    const heir = startGet(place.path, ["list.txt", "-o", "heir", ...shared, ...other]);
    await site.until(280);
    doomed.child.kill("SIGKILL");
    await doomed.ended;
    expect(await heir.ended).toMatchObject({ code: 0, stderr: "" });
    const done = new Set([...place.index("doomed"), ...place.index("heir")].map(({ url }) => url));
    expect(done.size).toBe(200);
  });
}
