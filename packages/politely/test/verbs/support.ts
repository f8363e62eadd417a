import { expect } from "vitest";
import type {
  KeyLimiter,
  Limiter,
  LimiterEvent,
  LimiterOptions,
  Limits,
  Permit,
  PolicyInput,
  Stats,
} from "../../src/index.js";
import { limit, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";

/** A limiter for hosts on a clock of its own, with everything it said. */
export interface Rig {
  readonly clock: VirtualClock;
  readonly limiter: Limiter;
  readonly events: LimiterEvent[];
}

/** A limiter for one key on a clock of its own, with everything it said. */
export interface KeyRig {
  readonly clock: VirtualClock;
  readonly limiter: KeyLimiter;
  readonly events: LimiterEvent[];
}

type RigOptions = Omit<LimiterOptions, "clock"> & { readonly clock?: VirtualClock };

/** Makes a limiter for hosts that starts at 0 ms. */
export function rig(policy?: PolicyInput, options: RigOptions = {}): Rig {
  const clock = options.clock ?? new VirtualClock();
  const limiter = politely(policy, { ...options, clock });
  const events: LimiterEvent[] = [];
  limiter.subscribe((event) => events.push(event));
  return { clock, limiter, events };
}

/** Makes a limiter for one key that starts at 0 ms. */
export function keyRig(limits: Limits, options: RigOptions = {}): KeyRig {
  const clock = options.clock ?? new VirtualClock();
  const limiter = limit(limits, { ...options, clock });
  const events: LimiterEvent[] = [];
  limiter.subscribe((event) => events.push(event));
  return { clock, limiter, events };
}

/** Calls `make` `count` times in one tick. */
export function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

/** What became of a promise so far. */
export interface Tracked<T> {
  state: "pending" | "done" | "failed";
  value: T | undefined;
  error: unknown;
}

/** Watches a promise without waiting for it; a rejection counts as handled. */
export function track<T>(promise: Promise<T>): Tracked<T> {
  const tracked: Tracked<T> = { state: "pending", value: undefined, error: undefined };
  promise.then(
    (value) => {
      tracked.state = "done";
      tracked.value = value;
    },
    (error: unknown) => {
      tracked.state = "failed";
      tracked.error = error;
    },
  );
  return tracked;
}

/** The error a promise ends with; fails when it does not. */
export function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error("this was expected to be rejected");
    },
    (error: unknown) => error,
  );
}

/** When each permit started, in whole microseconds given as milliseconds. */
export async function startsOf(permits: readonly Promise<Permit>[]): Promise<number[]> {
  const granted = await Promise.all(permits);
  return granted.map((permit) => exact(permit.startedAtMs));
}

/** Milliseconds rounded to whole microseconds, so that two instants can be compared exactly. */
export function exact(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

/** The distances between neighbours. */
export function gapsOf(starts: readonly number[]): number[] {
  return starts.slice(1).map((start, index) => exact(start - starts[index]));
}

/** The most starts in any interval of `periodMs`, the end of the interval not included. */
export function mostWithin(starts: readonly number[], periodMs: number): number {
  const sorted = [...starts].sort((a, b) => a - b);
  const counts = sorted.map((from) => sorted.filter((start) => start >= from && exact(start - from) < periodMs).length);
  return Math.max(0, ...counts);
}

/** Fails when a request is missing from the books of a host. */
export function expectBooks(stats: Stats | undefined): void {
  expect(stats).toBeDefined();
  if (stats === undefined) return;
  expect(stats.asked).toBe(stats.granted + stats.refused + stats.cancelled + stats.expired + stats.waiting);
  expect(stats.granted).toBe(stats.released + stats.lapsed + stats.inFlight);
}

/** A logger that remembers. */
export function memoryLogger(): { debug(line: string): void; info(line: string): void; warn(line: string): void } & {
  readonly lines: { debug: string[]; info: string[]; warn: string[] };
} {
  const lines = { debug: [] as string[], info: [] as string[], warn: [] as string[] };
  return {
    lines,
    debug: (line) => void lines.debug.push(line),
    info: (line) => void lines.info.push(line),
    warn: (line) => void lines.warn.push(line),
  };
}

/** The events of one type, in order. */
export function only<Type extends LimiterEvent["type"]>(
  events: readonly LimiterEvent[],
  type: Type,
): Extract<LimiterEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<LimiterEvent, { type: Type }> => event.type === type);
}

/** A permit that must be there. */
export function granted(permit: Permit | undefined): Permit {
  if (permit === undefined) throw new Error("a permit was expected");
  return permit;
}

/** Rows for `it.each`: each value with how it is written, so that titles tell NaN from null. */
export function rows(values: readonly unknown[]): [string, unknown][] {
  return values.map((value) => [shown(value), value]);
}

function shown(value: unknown): string {
  if (typeof value === "function") return "a function";
  return typeof value === "number" || value === undefined ? `${value}` : JSON.stringify(value);
}
