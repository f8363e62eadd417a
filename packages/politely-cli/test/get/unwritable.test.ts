import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startGet } from "./child.js";
import { canMount, mountTmpfs } from "./mount.js";
import { Place } from "./place.js";

const isRoot = process.getuid?.() === 0;
/** Longer than the start of Node takes on a busy machine, and shorter than anybody waits. */
const SOON_MS = 5_000;

/** What `get` says of a folder: `"refused: …"` when it ends with one line that names it and exit code 2. What hangs is killed. */
async function answerFor(place: Place, out: string, asUser?: number): Promise<string> {
  const args = ["https://example.com", "-o", out, "--no-robots"];
  const { child, ended } = startGet(place.path, args, asUser === undefined ? {} : { uid: asUser, gid: asUser });
  const timer = setTimeout(() => child.kill("SIGKILL"), SOON_MS);
  const { code, stderr } = await ended;
  clearTimeout(timer);
  const [, problem] =
    /^politely: the folder .* cannot be used: (.*)\. Name another one with --out\.\n$/.exec(stderr) ?? [];
  return code === 2 && problem !== undefined ? `refused: ${problem}` : `exit code ${code}: ${stderr}`;
}

it.runIf(existsSync("/proc/self"))("refuses a folder where nothing can be made, as in /proc", async () => {
  using place = new Place();
  expect(await answerFor(place, "/proc/x")).toMatch(/^refused: .*ENOENT.*'\/proc\/x'/);
  expect(await answerFor(place, "/proc/x/y/z")).toMatch(/^refused: .*ENOENT.*'\/proc\/x'/);
});

it("refuses a folder with a file in its way, or in the way of what it keeps", async () => {
  using place = new Place();
  place.file("file", "");
  expect(await answerFor(place, "file")).toMatch(/^refused: .*EEXIST.*file'/);
  expect(await answerFor(place, "file/below")).toMatch(/^refused: .*(EEXIST|ENOTDIR).*file/);
  for (const name of ["journal.db", "index.jsonl", "limits.db"]) {
    mkdirSync(join(place.path, "out", name), { recursive: true });
    expect(await answerFor(place, "out")).toMatch(/^refused: .*EISDIR/);
    rmSync(join(place.path, "out"), { recursive: true });
  }
  mkdirSync(join(place.path, "out"));
  place.file("out/.unfinished", "");
  // That one is ours: what a killed process left is removed, whatever it is.
  const { code } = await startGet(place.path, ["http://127.0.0.1:1/", "-o", "out", "--no-robots", "--retry", "0"])
    .ended;
  expect(code).toBe(1);
});

it("names a file of the folder that is damaged, and what becomes of the rest without it", async () => {
  using place = new Place();
  mkdirSync(join(place.path, "out"));
  for (const name of ["journal.db", "limits.db"]) {
    place.file(`out/${name}`, "this is no database, and never was one. ".repeat(200));
    const { code, stderr } = await startGet(place.path, ["http://127.0.0.1:1/", "-o", "out"]).ended;
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(
        `^politely: ${join(place.path, "out", name)} is damaged: file is not a database. Remove it: `,
      ) as string,
    });
    rmSync(join(place.path, "out", name));
  }
});

it.runIf(isRoot)("refuses a folder that somebody else may write to only", async () => {
  using place = new Place();
  const nobody = 65_534;
  chmodSync(place.path, 0o755);
  mkdirSync(join(place.path, "closed"), { mode: 0o755 });
  expect(await answerFor(place, "closed/below", nobody)).toMatch(/^refused: .*EACCES/);
  expect(await answerFor(place, "closed", nobody)).toMatch(/^refused: .*EACCES/);
  // Everything is there, and belongs to root.
  mkdirSync(join(place.path, "done"), { mode: 0o755 });
  for (const name of ["journal.db", "index.jsonl", "limits.db"]) place.file(`done/${name}`, "");
  expect(await answerFor(place, "done", nobody)).toMatch(/^refused: .*EACCES/);
});

it.runIf(canMount())("refuses a folder on a disk that is read-only", async () => {
  using place = new Place();
  using disk = mountTmpfs(place, "disk", "1m");
  mkdirSync(join(disk.path, "out"));
  execFileSync("mount", ["-o", "remount,ro", disk.path]);
  expect(await answerFor(place, "disk/new")).toMatch(/^refused: .*EROFS/);
  expect(await answerFor(place, "disk/out")).toMatch(/^refused: .*EROFS/);
});
