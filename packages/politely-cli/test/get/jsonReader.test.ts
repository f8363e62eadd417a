import { PassThrough } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { silentObserver } from "../../src/get/observer.js";
import { runGet } from "../../src/get/runGet.js";
import type { Io } from "../../src/io.js";
import { Place } from "./place.js";
import { pages, startSite } from "./site.js";

const COUNT = 600;

/** A run with `--json` whose stdout nobody reads. */
function unread(place: Place, urls: readonly string[]) {
  const interrupted = new AbortController();
  const stdout = new PassThrough({ highWaterMark: 2_000 });
  const io: Io = {
    stdin: new PassThrough().end(),
    stdout,
    stderr: new PassThrough(),
    env: {},
    cwd: place.path,
    isTerminal: false,
    columns: 80,
    interrupted: interrupted.signal,
    stopped: new AbortController().signal,
  };
  const options = { args: urls, policy: {}, out: "out", isRobots: false, isJson: true, concurrency: 8 };
  return { running: runGet(options, io, silentObserver), stdout, interrupted };
}

it("writes the index and holds back when nobody reads what --json says, and goes on when somebody does", async () => {
  using place = new Place();
  await using site = await startSite();
  const { running, stdout } = unread(place, pages(site, COUNT));
  await site.until(10);
  await delay(1_000);
  const asked = site.seen.length;
  expect(asked).toBeLessThan(COUNT / 2);
  expect(place.index()).toHaveLength(asked);
  let text = "";
  stdout.on("data", (piece: Buffer) => {
    text += piece.toString();
  });
  expect(await running).toMatchObject({ fetched: COUNT });
  expect(text.trim().split("\n")).toHaveLength(COUNT + 1);
});

it("ends on Ctrl-C while nobody reads what --json says, with everything in the index that was asked for", async () => {
  using place = new Place();
  await using site = await startSite();
  const { running, interrupted } = unread(place, pages(site, COUNT));
  await site.until(10);
  await delay(500);
  const beganMs = performance.now();
  interrupted.abort();
  await expect(running).rejects.toThrow(/left; run the same command again/);
  expect(performance.now() - beganMs).toBeLessThan(2_000);
  expect(place.index()).toHaveLength(site.seen.length);
});

it("ends when the reader has gone that nobody waits for", async () => {
  using place = new Place();
  await using site = await startSite();
  const { running, stdout } = unread(place, pages(site, COUNT));
  await site.until(10);
  await delay(300);
  stdout.on("error", () => undefined);
  stdout.destroy();
  expect(await running).toMatchObject({ fetched: COUNT });
});
