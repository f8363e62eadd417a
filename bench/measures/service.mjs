// @ts-check
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { answersPerSecond, postBytes, RawCaller } from "../harness/rawLoad.mjs";
import { ensure, median, pauseMs } from "../harness/timing.mjs";
import { politely } from "./contenders.mjs";

const COMMAND = fileURLToPath(new URL("../../packages/politely-cli/dist/bin.js", import.meta.url));
const BARE = fileURLToPath(new URL("../harness/bareService.mjs", import.meta.url));

const POLICY = {
  hosts: {
    "fast.example": { rate: "1000000/s", burst: 1_000 },
    "slow.example": { rate: "1/h" },
    // What a late wake-up leaves is used by the next: 20 ms of the rate.
    "steady.example": { rate: "1000/s", burst: 20 },
  },
};

const WARM_UP_S = 4;

/** @typedef {{ readonly pid: number; readonly host: string; readonly port: number; stop(): void }} Server */

/** @type {import("./types.d.ts").Measure} */
export const service = {
  name: "service",
  rows: [
    {
      id: "service-check",
      title: "POST /v1/check beside the same framework answering a constant, 64 connections",
      metrics: [
        { key: "share", title: "% of the constant", digits: 0 },
        { key: "perSecond", title: "answers/s", digits: 0 },
        { key: "barePerSecond", title: "constant answers/s", digits: 0 },
      ],
      contenders: [politely],
      params: { what: "check", samples: 7, ms: 2_000 },
      quick: { samples: 3, ms: 1_000 },
      rounds: 1,
      hasRatio: false,
      goals: [{ text: "at least 0.7 × the constant", metric: "share", atLeast: 70 }],
    },
    {
      id: "service-waiting",
      title: "10,000 callers waiting in POST /v1/acquire at once",
      metrics: [
        { key: "mb", title: "MB resident", digits: 0 },
        { key: "idleMb", title: "MB before", digits: 0 },
      ],
      contenders: [politely],
      params: { what: "waiting", count: 10_000 },
      rounds: 1,
      hasRatio: false,
      goals: [{ text: "under 300 MB", metric: "mb", atMost: 300 }],
    },
    {
      id: "service-grants",
      title: "a grant told to its caller after its start time, 1,000 grants/s, 100 callers",
      metrics: [
        { key: "p99Ms", title: "p99 ms", digits: 2 },
        // A machine that others use too stands still now and then: what the half of the seconds with the least of that has.
        { key: "usualP99Ms", title: "p99 ms, usual second", digits: 2 },
        // The same framework answering from a plain timer, just before: what of it is the machine's.
        { key: "bareP99Ms", title: "bare p99 ms", digits: 2 },
        { key: "p50Ms", title: "p50 ms", digits: 2 },
        { key: "perSecond", title: "grants/s", digits: 0 },
      ],
      contenders: [politely],
      params: { what: "grants", count: 100, seconds: 16 },
      quick: { seconds: 8 },
      rounds: 3,
      hasRatio: false,
      goals: [{ text: "p99 within 5 ms", metric: "p99Ms", atMost: 5 }],
    },
  ],

  async run(_rival, params) {
    const given = /** @type {typeof params & { what: "check" | "waiting" | "grants"; ms: number }} */ (params);
    const folder = mkdtempSync(join(tmpdir(), "politely-bench-"));
    writeFileSync(join(folder, "politely.json"), JSON.stringify(POLICY));
    const server = await start([COMMAND, "serve", "--port", "0", "--no-proxy"], folder);
    try {
      if (given.what === "check") return await check(server, given);
      return given.what === "waiting" ? await waiting(server, given.count) : await grants(server, given);
    } finally {
      server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** @param {Server} server @param {{ samples: number; ms: number }} params */
async function check(server, { samples, ms }) {
  const bare = await start([BARE], tmpdir());
  try {
    const sides = await Promise.all(
      [server, bare].map(async (address) => ({
        callers: await Promise.all(Array.from({ length: 64 }, () => RawCaller.open(address))),
        bytes: postBytes(address, "/v1/check", { domain: "fast.example" }),
      })),
    );
    for (const { callers, bytes } of sides) await answersPerSecond(callers, bytes, ms);
    /** @type {[number, number][]} */
    const rounds = [];
    for (let sample = 0; sample < samples; sample++) {
      const [ours, theirs] = [
        await answersPerSecond(sides[0].callers, sides[0].bytes, ms),
        await answersPerSecond(sides[1].callers, sides[1].bytes, ms),
      ];
      rounds.push([ours, theirs]);
    }
    return {
      share: median(rounds.map(([ours, theirs]) => (100 * ours) / theirs)),
      perSecond: median(rounds.map(([ours]) => ours)),
      barePerSecond: median(rounds.map(([, theirs]) => theirs)),
    };
  } finally {
    bare.stop();
  }
}

/** @param {Server} server @param {number} count */
async function waiting(server, count) {
  const idleMb = residentMb(server.pid);
  const bytes = postBytes(server, "/v1/acquire", { domain: "slow.example" });
  /** @type {RawCaller[]} */
  const callers = [];
  let answers = 0;
  while (callers.length < count) {
    const some = await Promise.all(Array.from({ length: 100 }, () => RawCaller.open(server)));
    for (const caller of some) void caller.ask(bytes).then(() => (answers += 1));
    callers.push(...some);
  }
  await pauseMs(3_000);
  // One of them had its turn at once.
  ensure(answers === 1, `${answers} callers were answered`);
  const mb = residentMb(server.pid);
  for (const caller of callers) caller.close();
  return { mb, idleMb };
}

/** @param {Server} server @param {{ count: number; seconds: number }} params */
async function grants(server, params) {
  const bare = await start([BARE], tmpdir());
  try {
    const theirs = (await lateness(bare, params)).flat();
    const judged = await lateness(server, params);
    const ours = judged.flat();
    return {
      p99Ms: percentile(ours, 0.99),
      usualP99Ms: median(judged.map((second) => percentile(second, 0.99))),
      bareP99Ms: percentile(theirs, 0.99),
      p50Ms: percentile(ours, 0.5),
      perSecond: ours.length / judged.length,
    };
  } finally {
    bare.stop();
  }
}

/**
 * By the second, how long after its start time each grant was told; without the first seconds, which are for the compiler.
 *
 * @param {Server} server @param {{ count: number; seconds: number }} params
 * @returns {Promise<number[][]>}
 */
async function lateness(server, { count, seconds }) {
  const bytes = postBytes(server, "/v1/acquire", { domain: "steady.example" });
  const callers = await Promise.all(Array.from({ length: count }, () => RawCaller.open(server)));
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  /** @type {number[][]} */
  const late = Array.from({ length: seconds }, () => []);
  await Promise.all(
    callers.map(async (caller) => {
      while (performance.now() < endMs) {
        const askedAtMs = performance.now();
        const { status, body } = await caller.ask(bytes);
        const tookMs = performance.now() - askedAtMs;
        ensure(status === 200, `an answer had status ${status}: ${body}`);
        const { permit, waitedMs } = JSON.parse(body);
        // The way of the question is counted too, since nobody sees where it ends.
        late[Math.floor((askedAtMs - startMs) / 1000)].push(tookMs - waitedMs);
        const { status: released } = await caller.ask(postBytes(server, "/v1/release", { permit, outcome: "success" }));
        ensure(released === 204, `a release had status ${released}`);
      }
    }),
  );
  for (const caller of callers) caller.close();
  return late.slice(WARM_UP_S);
}

/** @param {readonly number[]} values @param {number} part */
function percentile(values, part) {
  return values.toSorted((a, b) => a - b)[Math.floor(part * (values.length - 1))];
}

/**
 * Starts a program that says its address.
 *
 * @param {string[]} args
 * @param {string} cwd
 * @returns {Promise<Server>}
 */
function start(args, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
    process.once("exit", () => child.kill());
    let said = "";
    const hear = (/** @type {Buffer} */ chunk) => {
      said += chunk.toString();
      const [, host, port] = /http:\/\/([\d.]+):(\d+)/.exec(said) ?? [];
      if (port === undefined) return;
      resolve({ pid: child.pid ?? 0, host, port: Number(port), stop: () => void child.kill() });
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("exit", (code) => reject(new Error(`it ended with code ${code}: ${said}`)));
  });
}

/** @param {number} pid */
function residentMb(pid) {
  const [, kb] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kb) / 1024;
}
