import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { Terminal } from "../view/tmux.js";
import { Place } from "./place.js";
import { pages, startSite } from "./site.js";

const command = fileURLToPath(new URL("../../dist/bin.js", import.meta.url));
let terminal: Terminal | undefined;

afterEach(() => {
  terminal?.close();
  terminal = undefined;
});

/** Runs the command in a terminal of its own, in place of the one before. */
function open(place: Place, args: string): Terminal {
  terminal?.close();
  terminal = new Terminal(`cd ${place.path} && node ${command} get ${args}`, { columns: 110, rows: 24 });
  return terminal;
}

const lineOf = (lines: readonly string[], name: string): string =>
  lines.find((line) => line.startsWith(`${name} `)) ?? "";
const isOver = (lines: readonly string[]): boolean => lines.some((line) => line.startsWith("exit code"));

it("shows hosts, total, cooldown and log lines, stops at Ctrl-C and at the second one, goes on, and sums up", async () => {
  using place = new Place();
  let hasRefused = false;
  let isHanging = false;
  await using site = await startSite({
    delayMs: 300,
    answer(request, response) {
      if (request.headers.host?.startsWith("localhost") === true && !hasRefused) {
        hasRefused = true;
        response.writeHead(429, { "retry-after": "3" }).end();
        return true;
      }
      return isHanging;
    },
  });
  const strict = pages(site, 12).map((url) => url.replace("127.0.0.1", "localhost"));
  place.file("list.txt", [...pages(site, 40), ...strict].join("\n"));
  place.file(
    "politely.json",
    JSON.stringify({ hosts: { "127.0.0.1": { rate: "4/s" }, localhost: { rate: "5/s", concurrency: 1 } } }),
  );

  // A bar for each host, the total with the time that is left, and why the second host is left alone.
  const first = open(place, "list.txt --no-robots");
  const lines = await first.until(
    (now) => / cooldown .*429/.test(lineOf(now, "localhost")) && / left/.test(lineOf(now, "total")),
  );
  expect(lineOf(lines, "127.0.0.1")).toMatch(/^127\.0\.0\.1 +█*░+ +\d+\/40 +[\d.]+\/s {2}(next in .*rate 4\/s|4\/s)$/);
  expect(lineOf(lines, "localhost")).toMatch(
    /^localhost +░+ +0\/12 +[\d.]+\/s {2}cooldown [\d.]+ m?s: .*429.*Retry-After 3 s/,
  );
  expect(lineOf(lines, "total")).toMatch(/^total +█*░+ +\d+\/52 +[\d.]+\/s {2}[\d.]+ m?s left, \d+%, \d+ in flight/);
  expect(lines.at(-1)).toBe(lineOf(lines, "total"));

  // The first Ctrl-C: what is in flight ends, and nothing else begins.
  await first.until((now) => /[5-9]\/40/.test(lineOf(now, "127.0.0.1")));
  first.press("C-c");
  const stopped = await first.until(isOver);
  const done = place.index("politely-out").length;
  expect(stopped.join("\n")).toMatch(new RegExp(`^Stopped: ${done} of 52 fetched, ${52 - done} left, `, "m"));
  expect(stopped.join("\n")).toMatch(/^host +requests +429s +waited +rate +of limit +limit$/m);
  expect(lineOf(stopped, "localhost")).toMatch(/^localhost +1 +1 /);
  expect(stopped.at(-1)).toBe("exit code 1");
  expect(stopped.join(" ")).toContain("run the same command again to go on.");
  // The one that was refused is asked again; everything else that was asked for is finished.
  expect(site.seen.length).toBe(done + 1);

  // The second Ctrl-C: what hangs is broken off.
  isHanging = true;
  const second = open(place, "list.txt --no-robots");
  await site.until(done + 3);
  second.press("C-c");
  const stopping = await second.until((now) => /stopping: \d+ still in flight/.test(lineOf(now, "total")));
  expect(isOver(stopping)).toBe(false);
  second.press("C-c");
  expect((await second.until(isOver)).at(-1)).toBe("exit code 1");
  expect(place.index("politely-out")).toHaveLength(done);

  // The same command ends the rest, and says what it came to.
  isHanging = false;
  const third = open(place, "list.txt --no-robots");
  const ended = await third.until(isOver);
  expect(ended[0]).toMatch(/^52 of 52 fetched, \d+ requests, /);
  expect(lineOf(ended, "127.0.0.1")).toMatch(/^127\.0\.0\.1 +\d+ +0 +[\d.a-z ]+ +[\d.]+\/s +\d+% +4\/s$/);
  expect(ended.at(-1)).toBe("exit code 0");
  expect(third.cursor.isVisible).toBe(true);
  expect(new Set(place.index("politely-out").map(({ url }) => url)).size).toBe(52);

  // Log lines stand above the picture.
  const fourth = open(place, "list.txt --no-robots");
  const again = await fourth.until((now) => lineOf(now, "total") !== "");
  expect(again[0]).toBe("nothing is left: the whole list is asked for again, for what has changed");
  expect(again.slice(1).every((line) => /^(127\.0\.0\.1|localhost|total) /.test(line))).toBe(true);
  fourth.press("C-c");
  await fourth.until(isOver);
});
