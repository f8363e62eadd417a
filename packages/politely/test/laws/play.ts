import {
  type Limiter,
  type LimiterOptions,
  type Outcome,
  type Permit,
  type PolicyInput,
  politely,
} from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { type Ask, type Ending, pickFrom, type Script, type Step } from "../oracle/script.js";
import { type Start, toUs } from "../oracle/trace.js";

/** One request made by a script, and what the limiter did with it. */
export interface Call {
  readonly id: number;
  readonly ask: Ask;
  readonly arrivedUs: number;
  readonly abort: AbortController;
  fate: "waiting" | "started" | "rejected";
  permit?: Permit;
  startedUs?: number;
  /** How many were started before it. */
  startOrder?: number;
  releasedUs?: number;
  ending?: Ending;
  error?: unknown;
  /** When the rejection was seen. */
  leftUs?: number;
}

/** How a script is played. */
export interface PlaySetup {
  /** The first one holds from the start; the others wait for a `configure` step. */
  readonly policies: readonly PolicyInput[];
  readonly options?: Omit<LimiterOptions, "clock">;
  readonly clock?: VirtualClock;
  /** Stands between the limiter and the virtual clock. Default: nothing does. */
  readonly through?: (clock: VirtualClock) => LimiterOptions["clock"];
  /** Called once before the first step, and after every step. */
  readonly onStep?: (run: Run) => void;
  /** Called when the limiter exists, before anything is asked of it. */
  readonly onReady?: (limiter: Limiter) => void;
}

/** A played script: the limiter as it is now, and every call that was made. */
export interface Run {
  readonly clock: VirtualClock;
  readonly limiter: Limiter;
  readonly calls: Call[];
  /** Steps of the script, by number, that were tries and came back empty. */
  readonly refusedTries: Set<number>;
  /** Starts that were recorded without a permit. */
  recorded: number;
  /** Answers given to permits, in order. */
  readonly answers: { readonly call: Call; readonly ending: Ending; readonly atUs: number }[];
}

/** The key under which a policy's `global` counts. */
export const globalKey = "global";

/** Plays a script on a virtual clock from instant 0. Nothing sleeps. */
export async function play(script: Script, setup: PlaySetup): Promise<Run> {
  const clock = setup.clock ?? new VirtualClock();
  const seen = setup.through?.(clock) ?? clock;
  const limiter = politely(setup.policies[0], { ...setup.options, clock: seen });
  const run: Run = { clock, limiter, calls: [], refusedTries: new Set(), recorded: 0, answers: [] };
  setup.onReady?.(limiter);
  setup.onStep?.(run);
  let nowUs = toUs(clock.now());
  for (const [number, { afterUs, step }] of script.entries()) {
    nowUs += afterUs;
    // A stall may have carried the clock past this step already.
    await clock.advance(Math.max(0, nowUs / 1000 - clock.now()));
    nowUs = toUs(clock.now());
    if (step.kind === "try") {
      if (!tryNow(run, step.ask)) run.refusedTries.add(number);
    } else await takeStep(run, step, setup.policies);
    await clock.settle();
    setup.onStep?.(run);
  }
  return run;
}

/** The starts of a run as the oracle reads them, in the order they were made. */
export function traceOf(run: Run): Start[] {
  const made = startedCalls(run).sort((a, b) => (a.startOrder ?? 0) - (b.startOrder ?? 0));
  return made.map((call) => ({
    atUs: startUsOf(call),
    cost: call.ask.cost,
    releasedUs: call.releasedUs,
    unused: call.ending?.kind === "unused",
    keys: [call.ask.host, globalKey, ...(call.ask.scopes ?? [])],
  }));
}

/** When each call started, by its number; undefined where it never did. */
export function startTimes(calls: readonly { readonly startedUs?: number }[]): (number | undefined)[] {
  return calls.map((call) => call.startedUs);
}

/** The calls that were started, by the instant of their start, then by number, as the model lists them. */
export function startedCalls(run: Run): Call[] {
  return run.calls.filter((call) => call.fate === "started").sort((a, b) => startUsOf(a) - startUsOf(b) || a.id - b.id);
}

/** When a started call started. */
export function startUsOf(call: Call): number {
  return call.startedUs ?? Number.NaN;
}

/** Calls still in the queue, oldest first. */
export function waitingCalls(run: Run): Call[] {
  return run.calls.filter((call) => call.fate === "waiting");
}

/** Calls started and not released, oldest start first. */
export function inFlightCalls(run: Run): Call[] {
  return startedCalls(run).filter((call) => call.releasedUs === undefined);
}

/** An ending in the words of the public interface. */
export function toOutcome(ending: Ending): Outcome | undefined {
  if (ending.kind === "neutral") return undefined;
  if ("retryAfterMs" in ending) return { kind: ending.kind, retryAfterMs: ending.retryAfterMs };
  return ending.kind;
}

async function takeStep(
  run: Run,
  step: Exclude<Step, { kind: "try" }>,
  policies: readonly PolicyInput[],
): Promise<void> {
  const { clock, limiter } = run;
  if (step.kind === "acquire") acquire(run, step.ask);
  else if (step.kind === "look") {
    limiter.check(step.host);
    limiter.explain(step.host);
    limiter.stats(step.host);
    limiter.elapsedMs(step.host);
  } else if (step.kind === "cancel")
    pickFrom(waitingCalls(run), step.pick)?.abort.abort(new Error("cancelled by the script"));
  else if (step.kind === "release") {
    const call = pickFrom(inFlightCalls(run), step.pick);
    if (call !== undefined) release(run, call, step.ending);
  } else if (step.kind === "releaseAll") {
    for (const call of inFlightCalls(run)) {
      release(run, call, { kind: "neutral" });
      await clock.settle();
    }
  } else if (step.kind === "stall") clock.stall(step.us / 1000);
  else if (step.kind === "record") {
    limiter.record(step.host, toOutcome(step.ending) ?? "success");
    run.recorded += 1;
  } else if (step.kind === "cancelWaiting") limiter.cancelWaiting(step.host, new Error("all cancelled by the script"));
  else if (step.kind === "wall") clock.shiftWall(step.us / 1000);
  else limiter.configure(policies[step.policy]);
}

function acquire(run: Run, ask: Ask): void {
  const call = newCall(run, ask);
  run.limiter
    .acquire(targetOf(ask), {
      signal: call.abort.signal,
      cost: ask.cost,
      ...(ask.priority === undefined ? {} : { priority: ask.priority }),
      ...(ask.maxWaitUs === undefined ? {} : { maxWait: ask.maxWaitUs / 1000 }),
    })
    .then(
      (permit) => granted(run, call, permit),
      (error: unknown) => {
        call.fate = "rejected";
        call.error = error;
        call.leftUs = toUs(run.clock.now());
      },
    );
}

function tryNow(run: Run, ask: Ask): boolean {
  const permit = run.limiter.tryAcquire(targetOf(ask), { cost: ask.cost });
  if (permit !== undefined) granted(run, newCall(run, ask), permit);
  return permit !== undefined;
}

function newCall(run: Run, ask: Ask): Call {
  const abort = new AbortController();
  const call: Call = { id: run.calls.length, ask, arrivedUs: toUs(run.clock.now()), abort, fate: "waiting" };
  run.calls.push(call);
  return call;
}

function granted(run: Run, call: Call, permit: Permit): void {
  call.startOrder = run.calls.filter((other) => other.fate === "started").length;
  call.fate = "started";
  call.permit = permit;
  call.startedUs = toUs(permit.startedAtMs);
}

function release(run: Run, call: Call, ending: Ending): void {
  call.permit?.release(toOutcome(ending));
  call.releasedUs = toUs(run.clock.now());
  call.ending = ending;
  run.answers.push({ call, ending, atUs: call.releasedUs });
}

function targetOf(ask: Ask): { host: string; scopes?: readonly string[] } {
  return ask.scopes === undefined ? { host: ask.host } : { host: ask.host, scopes: ask.scopes };
}
