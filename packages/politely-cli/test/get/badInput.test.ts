import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { UsageError, WorkError } from "../../src/errors.js";
import { startGet } from "./child.js";
import { Place, run } from "./place.js";
import { pages, startSite } from "./site.js";

it("names the line of what is no URL, and has begun nothing", async () => {
  using place = new Place();
  await using site = await startSite();
  const urls = pages(site, 20);
  place.file("list.txt", ["# a comment", ...urls.slice(0, 15), "htp:/what is this", ...urls.slice(15)].join("\n"));
  const { error } = await run(place, ["list.txt"]);
  expect(error).toBeInstanceOf(UsageError);
  expect(error?.message).toBe(
    'list.txt:17: "htp:/what is this" is not a URL of http or https. Write one such as https://example.com/page.',
  );
  expect(site.seen).toHaveLength(0);
  expect(existsSync(join(place.path, "out"))).toBe(false);
});

it("says of a missing file that it is missing", async () => {
  using place = new Place();
  const { error } = await run(place, ["urls.txt"]);
  expect(error).toBeInstanceOf(UsageError);
  expect(error?.message).toMatch(/^urls\.txt: no such file/);
});

it("says so when there is nothing to fetch", async () => {
  using place = new Place();
  place.file("empty.txt", "# nothing\n\n");
  expect((await run(place, [])).error).toBeInstanceOf(UsageError);
  expect((await run(place, ["empty.txt"])).error?.message).toBe("the list has no URLs.");
});

it("says what is wrong with a policy", async () => {
  using place = new Place();
  const { error } = await run(place, ["https://example.com"], { policy: { default: { rate: "fast" as "1/s" } } });
  expect(error).toBeInstanceOf(UsageError);
  expect(error?.message).toMatch(/^the policy has problems: default\.rate: /);
});

it("refuses a folder that is a file", async () => {
  using place = new Place();
  place.file("out", "not a folder");
  const { error } = await run(place, ["https://example.com"]);
  expect(error).toBeInstanceOf(UsageError);
  expect(error?.message).toMatch(/^the folder .*out cannot be used: .*--out/);
});

it("refuses a folder in which another politely works", async () => {
  using place = new Place();
  await using site = await startSite({ delayMs: 300 });
  const first = run(place, pages(site, 1));
  await site.until(1);
  const second = await run(place, pages(site, 1));
  expect(second.error).toBeInstanceOf(WorkError);
  expect(second.error?.message).toMatch(/^another politely works in /);
  expect((await first).error).toBeUndefined();
});

it("stops when the disk takes no more, keeps what is done, and goes on once it does", async () => {
  using place = new Place();
  await using site = await startSite({
    answer: (request, response) => request.url === "/p/7.html" && Boolean(response.end(Buffer.alloc(3_000_000))),
  });
  place.file("list.txt", pages(site, 8).join("\n"));
  // A file of more than 1 MiB cannot be written: what a full disk says, without one.
  const command = fileURLToPath(new URL("../../dist/bin.js", import.meta.url));
  const script = `ulimit -f 1024; exec "${process.execPath}" "${command}" get -q list.txt --no-robots`;
  const ended = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
    execFile("bash", ["-c", script], { cwd: place.path }, (error, _, stderr) => resolve({ code: error?.code, stderr }));
  });
  expect(ended.stderr).toMatch(
    /^politely: the disk cannot be written: EFBIG.* of 8 left; run the same command again to go on\.\n$/,
  );
  expect(ended.code).toBe(1);
  const done = place.index("politely-out").length;
  const { code } = await startGet(place.path, ["list.txt", "--no-robots"]).ended;
  expect(code).toBe(0);
  expect(place.index("politely-out")).toHaveLength(8);
  expect(done).toBeLessThan(8);
});

it("answers an unknown option and a wrong number with one line and exit code 2", async () => {
  using place = new Place();
  const unknown = await startGet(place.path, ["https://example.com", "--speed"]).ended;
  expect(unknown).toMatchObject({ code: 2, stderr: "politely: unknown option '--speed'\n" });
  const wrong = await startGet(place.path, ["https://example.com", "--concurrency", "many"]).ended;
  expect(wrong).toMatchObject({
    code: 2,
    stderr: 'politely: --concurrency takes a whole number from 1 to 10,000; got "many"\n',
  });
  const share = await startGet(place.path, ["https://example.com", "--share", "ftp://x"]).ended;
  expect(share).toMatchObject({
    code: 2,
    stderr: "politely: --share takes redis://…, postgres://… or a file; got ftp://x\n",
  });
  const away = await startGet(place.path, ["https://example.com", "--share", "redis://127.0.0.1:1"]).ended;
  expect(away.code).toBe(1);
  expect(away.stderr).toMatch(/^politely: --share redis:\/\/127\.0\.0\.1:1 cannot be used: .*ECONNREFUSED/);
});
