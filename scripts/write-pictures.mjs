// Writes the pictures of docs/pictures from what the engine does on virtual time. Run it after a build.
// With --check nothing is written: the files must be there already, just as they would be made.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { limit } from "../packages/politely/dist/index.js";
import { VirtualClock } from "../packages/politely/dist/testing/index.js";
import { planRun } from "../packages/politely-cli/dist/plan/planRun.js";
import { planSvg } from "../packages/politely-cli/dist/plan/planSvg.js";
import { drawRequests, drawRows } from "./pictures/draw.mjs";
import { root } from "./run.mjs";

/** @typedef {import("../packages/politely/dist/index.js").Limits} Limits */
/** @typedef {import("./pictures/draw.mjs").Answered} Answered */
/** @typedef {import("./pictures/draw.mjs").Span} Span */

// A plan says at what time of day it ends; the picture must not depend on where it is drawn.
process.env.TZ = "UTC";
const folder = join(root, "docs", "pictures");

const pictures = {
  "limits.svg": await limitsPicture(),
  "together.svg": togetherPicture(),
  "cooldown.svg": await cooldownPicture(),
  "count-from.svg": countFromPicture(),
  "plan.svg": planPicture(),
};

const isCheck = process.argv.includes("--check");
const stale = Object.entries(pictures).filter(([name, text]) => !isWritten(name, text));
if (isCheck) {
  for (const [name] of stale)
    console.error(`docs/pictures/${name} is not what the engine does. Run: node scripts/write-pictures.mjs`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of stale) writeFileSync(join(folder, name), text);
  console.log(`${Object.keys(pictures).length} pictures in docs/pictures, ${stale.length} of them changed.`);
}

/** @param {string} name @param {string} text */
function isWritten(name, text) {
  const path = join(folder, name);
  return existsSync(path) && readFileSync(path, "utf8") === text;
}

/** Gap, bucket, window and cooldown: the same twelve requests, asked for at once. */
async function limitsPicture() {
  const asked = 12;
  const { requests, holds } = await play({ minDelay: "1s" }, { count: asked, latencyMs: 300, refused: [2] });
  return drawRows({
    title: "Twelve requests, asked for at once. Each dot is a start.",
    spanMs: 13_000,
    tickMs: 1_000,
    rows: [
      { name: 'minDelay: "1s"', note: "gap: a second between starts", starts: startsOf({ minDelay: "1s" }, asked) },
      {
        name: 'rate: "1/s", burst: 4',
        note: "bucket: four at once, then 1/s",
        starts: startsOf({ rate: "1/s", burst: 4 }, asked),
      },
      { name: 'window: "4/4s"', note: "window: four in any four seconds", starts: startsOf({ window: "4/4s" }, asked) },
      {
        name: 'minDelay: "1s", and a 429',
        note: "cooldown: Retry-After: 5 is obeyed",
        starts: requests.map(({ startMs }) => startMs),
        refused: requests.filter(({ isRefused }) => isRefused).map(({ startMs }) => startMs),
        holds,
      },
    ],
  });
}

/** What several limits of one entry do together: each start satisfies all of them. */
function togetherPicture() {
  const asked = 12;
  const row = (/** @type {string} */ name, /** @type {string} */ note, /** @type {Limits} */ limits) => ({
    name,
    note,
    starts: startsOf(limits, asked),
  });
  return drawRows({
    title: "All limits of an entry apply at once",
    spanMs: 13_000,
    tickMs: 1_000,
    rows: [
      row('window: "4/4s"', "alone: all four at once", { window: "4/4s" }),
      row('minDelay: "500ms"', "alone: two a second", { minDelay: "500ms" }),
      row("both", "four in any 4 s, and never closer", { window: "4/4s", minDelay: "500ms" }),
      row("both, and concurrency: 1", "answers take 800 ms", { window: "4/4s", minDelay: "500ms", concurrency: 1 }),
    ],
  });
}

/** A window counted from the start, and from the answer. */
function countFromPicture() {
  const asked = 9;
  return drawRows({
    title: "Where a period begins: answers take 800 ms",
    spanMs: 8_000,
    tickMs: 1_000,
    rows: [
      { name: 'window: "3/2s"', note: "counted from the start", starts: startsOf({ window: "3/2s" }, asked) },
      {
        name: 'countFrom: "answer"',
        note: "counted from the answer",
        starts: startsOf({ window: "3/2s", countFrom: "answer" }, asked),
      },
    ],
  });
}

/** One 429 among requests in flight: one incident, one probe, then the rest. */
async function cooldownPicture() {
  const limits = /** @type {const} */ ({ minDelay: "250ms", concurrency: 3 });
  const { requests, holds } = await play(limits, { count: 9, latencyMs: 700, refused: [1, 2] });
  const probe = requests.findIndex(({ startMs }) => startMs >= (holds.at(-1)?.toMs ?? 0));
  return drawRequests({
    title: "Two 429s are one incident: the host is left alone, then one probe goes first",
    spanMs: 9_000,
    tickMs: 1_000,
    requests,
    holds,
    notes: [
      { atMs: requests[1]?.endMs ?? 0, line: 1, text: "429, Retry-After: 5" },
      { atMs: requests[2]?.endMs ?? 0, line: 2, text: "429, Retry-After: 5" },
      { atMs: requests[probe]?.endMs ?? 0, line: probe, text: "the probe" },
    ],
  });
}

/** What `politely plan --svg` draws of a list. */
function planPicture() {
  const counts = new Map([
    ["api.example.com", 240],
    ["news.example.org", 120],
    ["archive.example.net", 300],
    ["blog.example.com", 30],
  ]);
  const policy = /** @type {const} */ ({
    default: { rate: "1/s" },
    hosts: {
      "api.example.com": { window: "60/min" },
      "archive.example.net": { rate: "2/s", burst: 20, concurrency: 4 },
    },
  });
  const wallMs = Date.UTC(2026, 10, 16, 9);
  return planSvg(planRun(counts, policy, { wallMs }), wallMs);
}

/**
 * When `count` requests start under these limits, by the planner: in milliseconds. Answers take 800 ms.
 *
 * @param {Limits} limits
 * @param {number} count
 */
function startsOf(limits, count) {
  const plan = planRun(
    new Map([["example.com", count]]),
    { default: limits },
    { latency: 800, wallMs: 0, hasWhatIf: false },
  );
  return plan.hosts[0]?.starts ?? [];
}

/**
 * Lets the engine start `count` requests on virtual time; those whose numbers are in `refused` are answered with a 429 and Retry-After: 5.
 *
 * @param {Limits} limits
 * @param {{ count: number; latencyMs: number; refused: readonly number[] }} site
 * @returns {Promise<{ requests: Answered[]; holds: Span[] }>}
 */
async function play(limits, { count, latencyMs, refused }) {
  const clock = new VirtualClock();
  const limiter = limit(limits, { clock });
  /** @type {Answered[]} */
  const requests = [];
  /** @type {Span[]} */
  const holds = [];
  limiter.subscribe((event) => {
    if (event.type !== "cooldown") return;
    const running = holds.at(-1);
    // A later 429 of the same incident lengthens the cooldown that runs.
    if (running !== undefined && event.atMs <= running.toMs) running.toMs = event.untilMs;
    else holds.push({ fromMs: event.atMs, toMs: event.untilMs, label: "cooldown" });
  });
  const tasks = Array.from({ length: count }, (_, number) =>
    limiter.run(async () => {
      const isRefused = refused.includes(number);
      const startMs = clock.now();
      await new Promise((resolve) => clock.setTimer(startMs + latencyMs, () => resolve(undefined)));
      requests[number] = { startMs, endMs: clock.now(), isRefused };
      return isRefused ? { status: 429, headers: { "retry-after": "5" } } : { status: 200 };
    }),
  );
  await clock.runToEnd();
  await Promise.all(tasks);
  return { requests, holds };
}
