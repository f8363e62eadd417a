import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { machineFailure } from "../../src/get/verdict.js";
import { startGet } from "./child.js";
import { Place } from "./place.js";
import { pages, startSite } from "./site.js";

const PRLIMIT = "/usr/bin/prlimit";
const COUNT = 4;

// Small bodies are written by a thread, large ones while they arrive.
it.each([4_000, 400_000])(
  "stops when too many files are open for a body of %i bytes, says what to do, and goes on once fewer are",
  async (bytes) => {
    using place = new Place();
    let pid: number | undefined;
    await using site = await startSite({
      answer(_, response) {
        // From now on it may open nothing more.
        if (pid !== undefined) execFileSync(PRLIMIT, ["--pid", String(pid), "--nofile=3:"]);
        response.end(Buffer.alloc(bytes));
        return true;
      },
    });
    place.file("list.txt", pages(site, COUNT).join("\n"));
    const args = ["list.txt", "--no-robots", "--concurrency", "1"];
    const { child, ended } = startGet(place.path, args);
    pid = child.pid;
    const { code, stderr } = await ended;
    expect(stderr).toMatch(
      /^politely: too many files are open: .*EMFILE.*\. Raise `ulimit -n` or lower --concurrency first\. 4 of 4 left; run the same command again to go on\.\n$/,
    );
    expect(code).toBe(1);
    pid = undefined;
    expect(await startGet(place.path, args).ended).toMatchObject({ code: 0, stderr: "" });
    expect(place.index("politely-out").filter(({ outcome }) => outcome === "fetched")).toHaveLength(COUNT);
  },
);

it("stops when too many files are open to ask for a robots.txt, and leaves its URLs", async () => {
  using place = new Place();
  const running = { pid: 0 };
  await using other = await startSite();
  await using site = await startSite({
    answer(request, response) {
      // The next site can only be asked over a connection of its own.
      if (running.pid > 0 && request.url !== "/robots.txt")
        execFileSync(PRLIMIT, ["--pid", String(running.pid), "--nofile=3:"]);
      response.writeHead(404).end();
      return true;
    },
  });
  place.file("list.txt", [...pages(site, 1), ...pages(other, 2)].join("\n"));
  const { child, ended } = startGet(place.path, ["list.txt", "--concurrency", "1", "--retry", "0"]);
  running.pid = child.pid ?? 0;
  const { code, stderr } = await ended;
  expect(stderr).toMatch(
    /^politely: too many files are open: .*EMFILE.* left; run the same command again to go on\.\n$/,
  );
  expect(code).toBe(1);
  expect(place.index("politely-out").filter(({ url }) => String(url).startsWith(other.origin))).toEqual([]);
});

it.each(["open", "connect", "scandir"])("knows that too many files are open from what %s says", (syscall) => {
  const error = Object.assign(new Error(`EMFILE: too many open files, ${syscall}`), { code: "EMFILE", syscall });
  expect(machineFailure(error)).toBe(
    `too many files are open: EMFILE: too many open files, ${syscall}. Raise \`ulimit -n\` or lower --concurrency first`,
  );
});

it("says that it is the whole machine that has too many files open", () => {
  const error = Object.assign(new Error("ENFILE: file table overflow, open 'x'"), { code: "ENFILE", syscall: "open" });
  expect(machineFailure(error)).toBe(
    "too many files are open on this machine: ENFILE: file table overflow, open 'x'. Lower --concurrency or end other programs first",
  );
});
