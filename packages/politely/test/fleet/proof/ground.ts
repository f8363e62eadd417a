import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, inject } from "vitest";
import type { FleetEntry } from "../fleetMember.js";
import { type Fleet, type MemberOptions, startFleet } from "../startFleet.js";
import type { Place } from "./places.js";

const openedWithinMs = 60_000;
const pollMs = 50;
/** How long anything that has to come may take on a busy machine. */
export const comesWithinMs = 20_000;

/** What a proof stands on: a store that processes share, and the library they use. */
export interface Ground {
  readonly kind: string;
  readonly address: Readonly<Record<string, unknown>>;
  readonly library: { readonly url: string };
}

/** Opens a place once for all tests of a file. The function returned gives it, and the library. */
export function groundOf<Opened extends Place>(open: () => Promise<Opened>): () => Ground & { readonly place: Opened } {
  let place: Opened | undefined;
  beforeAll(async () => {
    place = await open();
  }, openedWithinMs);
  afterAll(() => place?.close(), openedWithinMs);
  return () => {
    if (place === undefined) throw new Error("The place is opened before the tests.");
    return { kind: place.kind, address: place.address, library: { url: inject("bundleUrl") }, place };
  };
}

/** Starts members that run `worker.mjs` with `input`. */
export function startWorkers(
  { kind, address, library }: Ground,
  members: readonly MemberOptions[],
  input: Readonly<Record<string, unknown>>,
): Promise<Fleet> {
  const program = new URL("worker.mjs", import.meta.url);
  return startFleet({ library, program, members, input: { kind, address, ...input }, longestMs: 120_000 });
}

/** What was logged so far of one type, by one member or by all. */
export function logged(fleet: Fleet, type: string, member?: string): FleetEntry[] {
  return fleet.log().filter((entry) => entry.type === type && (member === undefined || entry.member === member));
}

/** Waits until the log of a fleet is as `isSo` says. It is asked 20 times a second: putting a long log in order takes time. */
export async function awaits(
  fleet: Fleet,
  what: string,
  isSo: (log: readonly FleetEntry[]) => boolean,
  withinMs = comesWithinMs,
): Promise<void> {
  const deadlineMs = performance.now() + withinMs;
  while (!isSo(fleet.log())) {
    if (performance.now() > deadlineMs) throw new Error(`Not within ${withinMs} ms: ${what}.`);
    await delay(pollMs);
  }
}

/** Waits until at least `count` entries of a type are there, and gives them. */
export async function comes(fleet: Fleet, type: string, member?: string, count = 1): Promise<FleetEntry[]> {
  const isOne = (entry: FleetEntry): boolean =>
    entry.type === type && (member === undefined || entry.member === member);
  const what = `${member ?? "the log"} has ${count} of "${type}"`;
  await awaits(fleet, what, (log) => log.filter(isOne).length >= count);
  return fleet.log().filter(isOne);
}

/** Waits until each of these has started something from now on. */
export async function allStart(fleet: Fleet, ids: readonly string[], withinMs = 2 * comesWithinMs): Promise<void> {
  const sinceUs = nowUs();
  const has = (log: readonly FleetEntry[], id: string): boolean =>
    log.some(({ type, member, machineUs }) => type === "start" && member === id && machineUs > sinceUs);
  await awaits(fleet, "everybody starts something", (log) => ids.every((id) => has(log, id)), withinMs);
}

/** Now, on the clock that all processes of the machine share. */
export function nowUs(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}
