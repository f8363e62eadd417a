import type { PolicyInput } from "politely";
import { expect, it } from "vitest";
import { LiveView } from "../../src/view/liveView.js";
import { fakeIo } from "../view/fakeIo.js";
import { Place, run } from "./place.js";
import { pages, type Site, startSite } from "./site.js";

/** What a person saw of a run in a terminal. */
interface Watched {
  /** Each picture, and when it was drawn. */
  readonly pictures: readonly { readonly atMs: number; readonly text: string }[];
  readonly endedAtMs: number;
}

/** Runs `get` with the live view in front of it. */
async function watch(urls: readonly string[], policy: PolicyInput, concurrency?: number): Promise<Watched> {
  using place = new Place();
  const io = fakeIo({ rows: 30, columns: 120 });
  const pictures: { atMs: number; text: string }[] = [];
  const write = io.stderr.write.bind(io.stderr);
  io.stderr.write = (text: string) => {
    pictures.push({ atMs: performance.now(), text });
    return write(text);
  };
  const view = new LiveView(io);
  const { summary, error } = await run(place, urls, {
    policy,
    ...(concurrency === undefined ? {} : { concurrency }),
    observer: {
      begin: (progress) => view.begin(progress),
      started: (key) => view.started(key),
      finished: (line) => view.finished(line),
      cooling: (key, untilMs) => view.cooling(key, untilMs),
    },
  });
  const endedAtMs = performance.now();
  if (summary !== undefined) view.end(summary);
  expect(error).toBeUndefined();
  return { pictures, endedAtMs };
}

/** Milliseconds of `850 ms`, `4.2 s` or `1 min 5 s` before the word "left". */
function leftMsIn(text: string): number | undefined {
  const [, minutes = "0", amount, unit] = /(?:(\d+) min )?([\d.]+) (ms|s) left/.exec(text) ?? [];
  if (amount === undefined) return undefined;
  return Number(minutes) * 60_000 + Number(amount) * (unit === "s" ? 1_000 : 1);
}

/** Nine of ten pictures with more than three seconds to go were right within 25 %: the machine may stand still for a moment. */
function expectRightFrom(name: string, fromMs: number, { pictures, endedAtMs }: Watched): void {
  const beganAtMs = pictures[0].atMs;
  const told = pictures
    .filter(({ atMs }) => atMs - beganAtMs >= fromMs && endedAtMs - atMs > 3_000)
    .map(({ atMs, text }) => ({ saidMs: leftMsIn(text), wasMs: endedAtMs - atMs }));
  expect(told.length).toBeGreaterThan(20);
  const wrong = told.filter(({ saidMs = 0, wasMs }) => Math.abs(saidMs - wasMs) > 0.25 * wasMs);
  expect({ name, wrong: wrong.slice(Math.floor(told.length / 10)) }).toEqual({ name, wrong: [] });
}

const named = (site: Site, name: string, count: number): string[] =>
  pages(site, count).map((url) => url.replace("127.0.0.1", name));

it("says within 25 % how long a run still takes, whatever holds it back, and when a quick host starts next", async () => {
  await using site = await startSite({ delayMs: 200 });
  const [paced, places, budget] = await Promise.all([
    watch(pages(site, 40), { hosts: { "127.0.0.1": { rate: "5/s" } } }),
    // 80 at 2 in flight and 200 ms each: 8 s. The policy alone would have them done in half a second.
    watch(pages(site, 80), { hosts: { "127.0.0.1": { concurrency: 40 } } }, 2),
    watch([...pages(site, 20), ...named(site, "localhost", 20)], {
      hosts: { "127.0.0.1": { rate: "50/s" }, localhost: { rate: "50/s" } },
      global: { rate: "5/s" },
    }),
  ]);
  expectRightFrom("paced", 0, {
    ...paced,
    pictures: paced.pictures.filter(({ text }) => leftMsIn(text) !== undefined),
  });
  // How long an answer takes is known after the first ones.
  expectRightFrom("places", 2_500, places);
  expectRightFrom("budget", 2_500, budget);

  // Five starts a second: there is nearly always one to wait for.
  const busy = paced.pictures.filter(({ text }) => /127\.0\.0\.1 .*\d+\/40/.test(text));
  const withNext = busy.filter(({ text }) => /127\.0\.0\.1 .*next in \d+ ms: rate 5\/s/.test(text));
  expect(withNext.length / busy.length).toBeGreaterThan(0.8);
});
