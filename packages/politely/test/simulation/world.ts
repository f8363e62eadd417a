import { PolitelyError, StoreError } from "../../src/errors.js";
import { politely } from "../../src/politely.js";
import type { SharedLimiter, SharedPermit } from "../../src/sharedTypes.js";
import { cellStore } from "../../src/stores/cellStore.js";
import type { Cells } from "../../src/stores/cells.js";
import type { Grant, Operation, ReplyTo, SettleReply, TakeOperation, TakeReply } from "../../src/stores/operations.js";
import type { Store } from "../../src/stores/store.js";
import { VirtualClock } from "../../src/testing/virtualClock.js";
import { Dice } from "./dice.js";
import { Machine } from "./machine.js";
import { Network } from "./network.js";
import type { Act, Asked, Scenario } from "./scenario.js";
import { type Made, SimulatedStore } from "./simulatedStore.js";

/** A start of a process, as the judges see it. */
export interface Start {
  readonly process: number;
  readonly asked: Asked;
  /** What the store granted; undefined for a start that the process made by itself, or that nothing limits. */
  readonly granted: Granted | undefined;
  /** On the store's clock, as the permit says. */
  readonly startedUs: number;
  /** In virtual time. */
  readonly atMs: number;
  /** The store's time then, and how long its process had had no answer. */
  readonly storeUs: number;
  readonly deafMs: number;
  readonly token: number;
  /** When it was released, in virtual time, and whether it was never sent. Infinity: never. */
  endedMs: number;
  isUnused: boolean;
}

/** One start that the store has granted. */
export interface Granted {
  readonly keys: readonly string[];
  readonly operation: TakeOperation;
  readonly grant: Grant;
  readonly reply: TakeReply;
  readonly made: Made;
  readonly sentMs: number;
  readonly heardMs: number;
}

/** A hold that the store has told of. */
export interface Held {
  readonly key: string;
  readonly nowUs: number;
  readonly untilUs: number;
  readonly made: Made;
}

/** One process of a run. */
export interface Process {
  readonly index: number;
  readonly machine: Machine;
  readonly network: Network;
  readonly limiter: SharedLimiter;
  /** Grants by first key, token and instant. Tokens are those of the first key. */
  readonly grants: Map<string, Granted>;
  asked: number;
  settled: number;
  /** When it was last answered by the store, or began. */
  heardMs: number;
  outcomes: Map<string, number>;
  /** Operations, by kind. */
  readonly calls: Map<string, number>;
}

/** What came of a run. */
export interface Trace {
  readonly scenario: Scenario;
  readonly starts: readonly Start[];
  readonly holds: readonly Held[];
  readonly processes: readonly Process[];
  /** What is wrong, found while it ran. */
  readonly faults: string[];
  /** Every event in order, for comparing two runs. */
  readonly lines: readonly string[];
}

/** A process does not wait for longer for an answer. */
const GIVEN_UP_MS = 1500;
/** Virtual time after which everything must have an answer once nothing goes wrong any more. */
const PATIENCE_MS = 120_000;
/** More operations than this are a spin. */
const CHANGES_MOST = 4_000;
/** Quotas are by the hour: whoever waits for several of them waits for hours, and asks once a minute. */
const QUOTA_MS = 24 * 3_600_000;
const QUOTA_CHANGES_MOST = 40_000;

/** Plays a scenario. The same scenario gives the same trace. */
export async function play(
  scenario: Scenario,
  { isLogged = false, wrap = (store: Store): Store => store } = {},
): Promise<Trace> {
  const dice = new Dice(scenario.seed ^ 0x5eed);
  const clock = new VirtualClock();
  const store = new SimulatedStore(clock);
  const starts: Start[] = [];
  const holds: Held[] = [];
  const faults: string[] = [];
  const lines: string[] = [];
  const processes: Process[] = [];
  const byIndex = new Map<number, Process>();
  const note = (line: () => string): void => {
    lines.push(`${clock.now().toFixed(3)} ${line()}`);
    if (isLogged) console.info(lines.at(-1));
  };

  /** Operations that were carried out, and the tokens of the starts that each was granted. */
  const carriedOut = new Map<string, Map<number, string>>();
  const carryOut = async <Op extends Operation>(keys: readonly string[], operation: Op): Promise<ReplyTo<Op>> => {
    const { epoch } = store;
    const reply = await store.server.transact(keys, operation);
    if (operation.kind !== "take") return reply;
    const { grants } = reply as unknown as TakeReply;
    const tokens = grants.map(({ token }) => token).join();
    const ofAsker = carriedOut.get(`${epoch} ${operation.asker}`) ?? new Map<number, string>();
    carriedOut.set(`${epoch} ${operation.asker}`, ofAsker);
    const before = ofAsker.get(operation.number);
    const isForgotten = scenario.acts.some((one) => one.kind === "jump");
    // An old question that comes late is given the reply to the asker's latest one.
    const isLate = Array.from(ofAsker).some(([number, later]) => number > operation.number && later === tokens);
    if (before !== undefined && before !== tokens && before !== "" && !isForgotten && !isLate)
      faults.push("a take was carried out twice (L16)");
    if (!isLate) ofAsker.set(operation.number, tokens);
    return reply;
  };

  const begin = (index: number): void => {
    const machine = new Machine(clock, dice.whole(-50_000, 50_000) / 8);
    const network = new Network(machine, store, scenario.way, dice.apart());
    const random = dice.apart();
    const cells: Cells = {
      ...store.cells,
      change: (keys, change) => network.call(() => store.cells.change(keys, change), true),
    };
    const own = cellStore(cells);
    const way: Store = scenario.isCells
      ? own
      : {
          ...store.server,
          transact: (keys, operation) => network.call(() => carryOut(keys, operation), false),
        };
    const grants = new Map<string, Granted>();
    const calls = new Map<string, number>();
    const transact = async <Op extends Operation>(keys: readonly string[], operation: Op): Promise<ReplyTo<Op>> => {
      const sentMs = clock.now();
      count(calls, operation.kind);
      note(() => `${index} sends ${operationWords(keys, operation)}`);
      const reply = await way.transact(keys, operation);
      const heard = byIndex.get(index);
      // A store that comes back is told first what it has missed, and is away until then.
      const isInTime = clock.now() - sentMs < GIVEN_UP_MS;
      if (heard !== undefined && operation.kind === "take" && isInTime) heard.heardMs = clock.now();
      const made = store.made.get(reply);
      note(() => `${index} hears ${replyWords(operation, reply)}`);
      if (made === undefined) throw new Error("A reply that was never made.");
      if (operation.kind === "take") {
        const taken = reply as unknown as TakeReply;
        for (const grant of taken.grants) {
          for (let nth = 0; nth < grant.count; nth++) {
            const granted: Granted = {
              keys,
              operation,
              grant,
              reply: taken,
              made,
              sentMs,
              heardMs: clock.now(),
            };
            grants.set(`${keys[0]} ${grant.token + nth} ${grant.startedUs}`, granted);
          }
        }
      } else if (operation.kind === "settle" || operation.kind === "record") {
        const { holds: told, nowUs } = reply as unknown as SettleReply;
        for (const { index: which, untilUs } of told) holds.push({ key: keys[which], nowUs, untilUs, made });
      }
      return reply;
    };
    const limiter = politely(scenario.policy, {
      store: wrap({ ...way, transact }),
      clock: machine.clock,
      random: () => random.next(),
      outage: scenario.outage,
      batch: scenario.isBatch,
    });
    const process: Process = {
      index,
      machine,
      network,
      limiter,
      grants,
      calls,
      asked: 0,
      settled: 0,
      heardMs: clock.now(),
      outcomes: new Map(),
    };
    limiter.subscribe((event) => {
      if (event.type === "outage") note(() => `${index} ${event.message}`);
    });
    processes.push(process);
    byIndex.set(index, process);
  };

  const ended = (process: Process, how: string): void => {
    process.settled += 1;
    count(process.outcomes, how);
    note(() => `${process.index} ${how}`);
  };

  const ask = async (process: Process, asked: Asked): Promise<void> => {
    const { limiter, machine } = process;
    process.asked += 1;
    const { cancelMs, cost, maxWaitMs, spent, target, verb, workMs } = asked;
    const cancel = cancelMs === undefined ? undefined : new AbortController();
    if (cancelMs !== undefined) machine.after(cancelMs, () => cancel?.abort("cancelled"));
    try {
      const permit: SharedPermit | undefined =
        verb === "tryAcquire"
          ? await limiter.tryAcquire(target, { cost })
          : await limiter.acquire(target, { cost, maxWait: maxWaitMs, signal: cancel?.signal });
      if (permit === undefined) {
        ended(process, "refused");
        return;
      }
      const start = startOf(process, asked, permit, clock.now(), store.nowUs());
      starts.push(start);
      ended(process, `starts ${permit.key} at ${start.startedUs} token ${start.token}`);
      const release = (): void => {
        start.endedMs = clock.now();
        start.isUnused = asked.outcome === "unused";
        note(() => `${process.index} releases ${start.token}`);
        void Promise.resolve(permit.release(asked.outcome, spent === undefined ? undefined : { cost: spent })).catch(
          (error: unknown) => faults.push(`a release was rejected: ${String(error)}`),
        );
      };
      if (workMs === 0) release();
      else machine.after(workMs, release);
    } catch (error) {
      // A cost that a limit can never take.
      const isTooMuch = error instanceof RangeError && cost > 1;
      if (error !== "cancelled" && !isTooMuch && !(error instanceof PolitelyError))
        faults.push(`${process.index}: ${stackOf(error)}`);
      // Whoever waits can be asked for again; whoever does not hears that nobody knows.
      const isWaiting = verb === "acquire" && maxWaitMs !== 0;
      if (error instanceof StoreError && isWaiting && scenario.outage === "share")
        faults.push(`share rejects: ${error.message}`);
      ended(process, error instanceof PolitelyError ? error.code : "cancelled");
    }
  };

  const act = (one: Act): void => {
    if (one.kind === "begin") {
      begin(one.process);
      return;
    }
    note(() => JSON.stringify({ ...one, atMs: undefined }));
    if (one.kind === "down") {
      const how = one.isRefused ? "refused" : "silent";
      store.goDown(how, one.isEmptied);
      clock.setTimer(clock.now() + one.forMs, () => {
        store.down = undefined;
        note(() => "the store is up");
      });
      return;
    }
    if (one.kind === "jump") {
      store.jumpUs += one.byMs * 1000;
      return;
    }
    const process = byIndex.get(one.process);
    if (process === undefined) return;
    const { limiter, machine, network } = process;
    const failed = (error: unknown): void => {
      if (!(error instanceof StoreError)) faults.push(`${one.kind}: ${stackOf(error)}`);
    };
    if (one.kind === "stop") {
      machine.stop();
      clock.setTimer(clock.now() + one.forMs, () => machine.goOn());
    } else if (one.kind === "kill") machine.kill();
    else if (one.kind === "cut") {
      network.cut = one.isRefused ? "refused" : "silent";
      clock.setTimer(clock.now() + one.forMs, () => {
        network.cut = undefined;
      });
    } else {
      machine.run(() => {
        if (one.kind === "ask") void ask(process, one);
        else if (one.kind === "pause") limiter.pause("x.org", one.forMs).catch(failed);
        else if (one.kind === "resume") limiter.resume("x.org").catch(failed);
        else if (one.kind === "record") limiter.record("x.org", one.outcome).catch(failed);
        else if (one.kind === "configure")
          limiter
            .configure({
              ...scenario.policy,
              hosts: { ...scenario.policy.hosts, "x.org": { ...scenario.answers, ...one.limits } },
            })
            .catch(failed);
      });
    }
  };

  for (const one of scenario.acts) clock.setTimer(one.atMs, () => act(one));
  for (let atMs = 0; atMs < scenario.endMs && store.changes < CHANGES_MOST; atMs += 500) await clock.advance(500);
  heal(store, processes);
  const living = processes.filter(({ machine }) => !machine.isDead);
  const isSettled = (): boolean => living.every(({ asked, settled }) => asked === settled);
  const hasQuota = JSON.stringify(scenario).includes("quota");
  const patienceMs = hasQuota ? QUOTA_MS : PATIENCE_MS;
  const changesMost = hasQuota ? QUOTA_CHANGES_MOST : CHANGES_MOST;
  // What stood still goes on first.
  await clock.advance(500);
  for (let waitedMs = 0; waitedMs < patienceMs && !isSettled() && store.changes < changesMost; ) {
    const stepMs = waitedMs < PATIENCE_MS ? 500 : 60_000;
    await clock.advance(stepMs);
    waitedMs += stepMs;
  }
  if (store.changes >= changesMost) {
    faults.push(`the store was asked ${store.changes} times for ${starts.length} starts (L16)`);
    return { scenario, starts, holds, processes, faults, lines };
  }
  for (const { asked, settled, index } of living) {
    if (asked !== settled)
      faults.push(`process ${index} hangs: ${asked - settled} of ${asked} requests have no answer (L17)`);
  }
  await end(clock, living, faults);
  return { scenario, starts, holds, processes, faults, lines };
}

/** From now on nothing goes wrong. */
function heal(store: SimulatedStore, processes: readonly Process[]): void {
  store.down = undefined;
  for (const { machine, network } of processes) {
    network.cut = undefined;
    network.isHealed = true;
    machine.goOn();
  }
}

/** Closes what lives, and looks for what is left of it. */
async function end(clock: VirtualClock, living: readonly Process[], faults: string[]): Promise<void> {
  await clock.advance(1000);
  for (const { index, limiter, outcomes, asked } of living) {
    const books = { granted: 0, waiting: 0, cancelled: 0, inFlight: 0 };
    for (const row of limiter.eachStats()) {
      books.granted += row.totalRequests;
      books.waiting += row.waiting;
      books.inFlight += row.inFlight;
    }
    if (books.waiting > 0 && asked > 0)
      faults.push(`process ${index} says ${books.waiting} wait, and nobody does (L13)`);
    void outcomes;
  }
  let closed = 0;
  for (const { limiter } of living) {
    limiter.close().then(
      () => {
        closed += 1;
      },
      (error: unknown) => faults.push(`close rejects: ${stackOf(error)}`),
    );
  }
  for (let waitedMs = 0; waitedMs < 20_000 && closed < living.length; waitedMs += 100) await clock.advance(100);
  if (closed < living.length) faults.push(`close does not end for ${living.length - closed} (L17)`);
  // A question that was on its way has its answer, or is given up.
  await clock.advance(2_000);
  for (const { index, machine } of living) {
    if (machine.timers.size > 0) faults.push(`process ${index} leaves ${machine.timers.size} timers (L14)`);
  }
}

function startOf(process: Process, asked: Asked, permit: SharedPermit, atMs: number, storeUs: number): Start {
  const startedUs = Math.round(permit.startedAtMs * 1000);
  const token = permit.token ?? 0;
  const granted = token === 0 ? undefined : process.grants.get(`host ${permit.key} ${token} ${startedUs}`);
  return {
    process: process.index,
    asked,
    granted,
    startedUs,
    atMs,
    storeUs,
    deafMs: atMs - process.heardMs,
    token,
    endedMs: Number.POSITIVE_INFINITY,
    isUnused: false,
  };
}

function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function operationWords(keys: readonly string[], operation: Operation): string {
  const more =
    operation.kind === "take"
      ? ` count ${operation.count}`
      : operation.kind === "settle"
        ? ` ${operation.answer.kind} of ${operation.startedUs}${operation.isOver ? "" : " goes on"}`
        : operation.kind === "renew"
          ? ` ${operation.places.map((places) => places.length).join()} places, ${operation.gone.length} gone`
          : "";
  return `${operation.kind}${senderWords(operation)}${more} [${keys.join(", ")}]`;
}

function replyWords(operation: Operation, reply: object): string {
  const { nowUs, grants, stop, holds } = reply as Partial<TakeReply & SettleReply> & { nowUs: number };
  const granted =
    grants?.map(({ startedUs, count: many, token }) => `${startedUs - nowUs}×${many} token ${token}`).join() ?? "";
  const stopped = stop === undefined ? "" : ` stop ${stop.limit} turn ${stop.turnUs - nowUs}`;
  return `${operation.kind}${senderWords(operation)} at ${nowUs} ${granted}${stopped}${holds?.length ? ` holds ${JSON.stringify(holds)}` : ""}`;
}

function senderWords(operation: Operation): string {
  if (!("asker" in operation)) return "";
  return ` ${operation.asker.split(".")[1]}#${operation.number}${operation.isAgain ? " again" : ""}`;
}
