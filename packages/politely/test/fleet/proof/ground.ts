import { afterAll, beforeAll } from "vitest";
import { type CompiledLibrary, compileLibrary } from "../compileLibrary.js";
import type { FleetEntry } from "../fleetMember.js";
import { type Fleet, type MemberOptions, startFleet } from "../startFleet.js";
import { until } from "../until.js";
import type { Place } from "./places.js";

const openedWithinMs = 60_000;
/** How long anything that has to come may take on a busy machine. */
export const comesWithinMs = 20_000;

/** What a proof stands on: a store that processes share, and the library they use. */
export interface Ground {
  readonly kind: string;
  readonly address: Readonly<Record<string, unknown>>;
  readonly library: { readonly url: string };
}

/** Opens a place once for all tests of a file, and compiles the library. The function returned gives both. */
export function groundOf<Opened extends Place>(open: () => Promise<Opened>): () => Ground & { readonly place: Opened } {
  let library: CompiledLibrary | undefined;
  let place: Opened | undefined;
  beforeAll(async () => {
    [library, place] = await Promise.all([compileLibrary(), open()]);
  }, openedWithinMs);
  afterAll(async () => {
    library?.remove();
    await place?.close();
  }, openedWithinMs);
  return () => {
    if (library === undefined || place === undefined) throw new Error("The place is opened before the tests.");
    return { kind: place.kind, address: place.address, library, place };
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

/** Waits until at least `count` entries of a type are there, and gives them. */
export async function comes(fleet: Fleet, type: string, member?: string, count = 1): Promise<FleetEntry[]> {
  const who = member === undefined ? "the log" : member;
  await until(`${who} has ${count} of "${type}"`, comesWithinMs, () => logged(fleet, type, member).length >= count);
  return logged(fleet, type, member);
}
