import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startGet } from "./child.js";
import { canMount, mountTmpfs } from "./mount.js";
import { Place } from "./place.js";
import { pages, startSite } from "./site.js";

const COUNT = 60;

// Small bodies are written by a thread, large ones while they arrive.
it.runIf(canMount()).each([40_000, 400_000])(
  "stops when a disk is full of bodies of %i bytes, keeps what is done, and goes on once there is room",
  async (bytes) => {
    using place = new Place();
    using disk = mountTmpfs(place, "disk", `${1_000 + (bytes * COUNT) / 2_000}k`);
    const body = Buffer.alloc(bytes, "polite ");
    await using site = await startSite({ answer: (_, response) => Boolean(response.end(body)) });
    place.file("list.txt", pages(site, COUNT).join("\n"));
    // Not all at once: none of them would be whole when the disk is full.
    const args = ["list.txt", "-o", "disk/out", "--no-robots", "--concurrency", "8"];
    const full = await startGet(place.path, args).ended;
    expect(full.code).toBe(1);
    expect(full.stderr).toMatch(
      /^politely: (the disk cannot be written|it cannot go on): .*left; run the same command again to go on\.\n$/,
    );
    const done = place.index("disk/out");
    // Every body that is there whole stands in the index.
    const bodies = readdirSync(join(disk.path, "out"), { recursive: true, encoding: "utf8" });
    const whole = bodies.filter((name) => name.endsWith(".html"));
    expect(new Set(done.map(({ file }) => file))).toEqual(new Set(whole));
    expect(done.length).toBeGreaterThan(0);
    expect(done.length).toBeLessThan(COUNT);
    const before = site.counts();

    execFileSync("mount", ["-o", "remount,size=64m", disk.path]);
    expect(await startGet(place.path, args).ended).toMatchObject({ code: 0, stderr: "" });
    const after = site.counts();
    const finished = done.map(({ url }) => new URL(url).pathname);
    expect(finished.filter((path) => after.get(path) !== before.get(path))).toEqual([]);
    const lines = place.index("disk/out");
    expect(new Set(lines.map(({ url }) => url)).size).toBe(COUNT);
    expect(lines).toHaveLength(COUNT);
    for (const { file = "" } of lines) expect(place.read(join("disk/out", file))).toHaveLength(bytes);
    const left = readdirSync(join(disk.path, "out"), { recursive: true, encoding: "utf8" });
    expect(left.filter((name) => /~part$|^\./.test(name))).toEqual([]);
  },
);
