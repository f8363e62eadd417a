import type { WallCalendar } from "../core/calendar.js";
import type { Cost, Key, Log, Place } from "../core/key.js";
import { Rest, ROW } from "../core/key.js";
import { placesOf, placesTake } from "../core/limits/places.js";
import { StoreError } from "../errors.js";
import type { HeldPlace } from "./operations.js";

const { LAST_US, OWED, SEEN_US, UNITS } = ROW;
const MARK = "politely";
const VERSION = 2;
const NEVER = Number.NEGATIVE_INFINITY;

/** An asker who waits for its turn at a key. */
export interface Turn {
  /** Since when; those who came first go first. */
  readonly sinceUs: number;
  /** When it was told to come back. */
  turnUs: number;
  /** How many starts it takes then, and what they cost together. */
  readonly count: number;
  readonly cost: Cost;
  /** It comes when it is called, and its turn is then. */
  readonly isCalled?: boolean;
}

/** The last reply to an asker, in case it did not arrive. */
export interface Memory {
  readonly number: number;
  readonly atUs: number;
  /** How far the clock was set back since. */
  readonly movedUs: number;
  /** As JSON, with `∞` and `-∞` for numbers that it does not have. */
  readonly reply: string;
}

/** A key in a store: what the limits know of it, and who shares it. One value of a cell. */
export class StoredKey implements Key {
  readonly words = new Float64Array(5);
  readonly halves = new Uint32Array(this.words.buffer);
  readonly at = 0;
  rest: Rest | undefined = undefined;
  /** When it was last changed. */
  changedUs = 0;
  /** Starts and 429s ever, and the newest token. */
  starts = 0;
  throttled = 0;
  token = 0;
  /** How long places are likely to be held; 0: nobody knows. */
  heldUs = 0;
  /** Until then it owes something to somebody, or is told apart from a new key. */
  keepUntilUs = 0;
  /** When each process was last seen. */
  readonly members = new Map<string, number>();
  /** Who waits here, in order of coming. */
  readonly line = new Map<string, Turn>();
  readonly memories = new Map<string, Memory>();

  constructor(readonly calendar: WallCalendar) {
    this.words[LAST_US] = NEVER;
    this.words[SEEN_US] = NEVER;
  }

  needRest(): Rest {
    this.rest ??= new Rest();
    return this.rest;
  }

  /** Moves all that it knows by some time, since the store's clock was set back: nothing hangs, and nothing is forgiven. */
  move(byUs: number): void {
    const { words, rest, line, members, memories } = this;
    words[LAST_US] += byUs;
    words[SEEN_US] += byUs;
    this.changedUs += byUs;
    for (const [asker, turn] of line)
      line.set(asker, { ...turn, sinceUs: turn.sinceUs + byUs, turnUs: turn.turnUs + byUs });
    for (const [process, seenUs] of members) members.set(process, seenUs + byUs);
    for (const [asker, { atUs, movedUs, ...memory }] of memories)
      memories.set(asker, { ...memory, atUs: atUs + byUs, movedUs: movedUs + byUs });
    if (rest === undefined) return;
    const { holds } = rest;
    const { incident, headers } = holds ?? {};
    rest.answeredUs += byUs;
    for (const log of rest.logs ?? []) for (let index = 0; index < log.atUs.length; index++) log.atUs[index] += byUs;
    for (const place of placesOf(this)) {
      const held = heldPlaceOf(place);
      const moved = { ...held, aliveUntilUs: held.aliveUntilUs + byUs };
      Object.assign(place, { startedUs: place.startedUs + byUs, permit: moved });
    }
    if (rest.cut !== undefined) rest.cut = { ...rest.cut, atUs: rest.cut.atUs + byUs };
    if (rest.returned !== undefined) rest.returned = { ...rest.returned, previousUs: rest.returned.previousUs + byUs };
    if (holds?.pausedUntilUs !== undefined) holds.pausedUntilUs += byUs;
    if (holds !== undefined && incident !== undefined) {
      const { untilUs, beganUs, probeAtUs } = incident;
      const moved = { untilUs: untilUs + byUs, beganUs: beganUs + byUs, probeAtUs: probeAtUs + byUs };
      holds.incident = { ...incident, ...moved };
    }
    if (holds !== undefined && headers !== undefined) {
      const { holdUntilUs, untilUs, startedUs } = headers;
      const moved = { holdUntilUs: holdUntilUs + byUs, untilUs: untilUs + byUs, startedUs: startedUs + byUs };
      holds.headers = { ...headers, ...moved };
    }
  }
}

/** What a place in a store is known by. */
export function heldPlaceOf(place: Place): HeldPlace {
  return place.permit as HeldPlace;
}

/** The process of an asker, or of a place. */
export function processOf(name: string): string {
  return name.slice(0, name.indexOf("."));
}

/** Writes a key as text. */
export function storedText(key: StoredKey): string {
  return textOf([MARK, VERSION, storedOf(key)]);
}

/** A key as it is written. */
function storedOf(key: StoredKey) {
  const { words, halves, line, members, memories } = key;
  const { logs = [], places, kept: _, holds, ...rest } = key.rest ?? new Rest();
  // What one process asks for beyond its rule it says each time.
  const { incident, probe, pausedUntilUs, headers } = holds ?? {};
  const isHeld = incident !== undefined || pausedUntilUs !== undefined || headers !== undefined;
  return {
    block: [words[LAST_US], words[OWED], words[SEEN_US], halves[UNITS]],
    counts: [key.changedUs, key.starts, key.throttled, key.token, key.heldUs, key.keepUntilUs],
    rest: { ...rest, holds: isHeld ? { incident, probe, pausedUntilUs, headers } : undefined },
    logs: logs.map(logText),
    places:
      places &&
      placesOf(key).map((place) => [heldPlaceOf(place), place.startedUs, place.units, place.pendingUnits] as const),
    line: [...line],
    members: [...members],
    memories: [...memories],
  };
}

/** Reads a key. Throws `StoreError` for a value that is none, or of another version. */
export function readStored(text: string, name: string, calendar: WallCalendar): StoredKey {
  try {
    const [mark, version, stored] = readText<readonly [string, number, ReturnType<typeof storedOf>]>(text);
    if (mark !== MARK || version !== VERSION) throw new TypeError(`version ${String(version)}`);
    const { block, counts, rest, logs, places, line, members, memories } = stored;
    if (![...block, ...counts].every((number) => typeof number === "number")) throw new TypeError("not numbers");
    const key = new StoredKey(calendar);
    key.words.set(block.slice(0, 3), LAST_US);
    key.halves[UNITS] = block[3];
    [key.changedUs, key.starts, key.throttled, key.token, key.heldUs, key.keepUntilUs] = counts;
    Object.assign(key.needRest(), rest, logs.length === 0 ? {} : { logs: logs.map(readLog) });
    for (const [process, seenUs] of members) key.members.set(process, seenUs);
    for (const [asker, turn] of line) key.line.set(asker, turn);
    for (const [asker, memory] of memories) key.memories.set(asker, memory);
    if (places !== undefined) key.needRest().places = { count: 0, pendingUnits: 0, first: undefined, last: undefined };
    for (const [held, startedUs, units, pending] of places ?? [])
      placesTake(key, startedUs, units, pending).permit = held;
    return key;
  } catch (cause) {
    throw new StoreError(
      `The value stored for "${name}" is not one of this version of politely. Choose another name or table, or remove it.`,
      { cause, isLasting: true },
    );
  }
}

/** JSON, and infinite numbers, which that does not have. */
export function textOf(value: object): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (part === Number.POSITIVE_INFINITY) return "∞";
    return part === Number.NEGATIVE_INFINITY ? "-∞" : part;
  });
}

/** Reads what `textOf` wrote. `change` is called with each number and the name of its field. */
export function readText<Value>(text: string, change = (number: number, _name: string): number => number): Value {
  return JSON.parse(text, (name, part: unknown) => {
    if (part === "∞") return Number.POSITIVE_INFINITY;
    if (part === "-∞") return Number.NEGATIVE_INFINITY;
    return typeof part === "number" ? change(part, name) : part;
  }) as Value;
}

/** A log as the distances between its starts, with their units. */
function logText({ spanUs, grainUs, blurUs, atUs, sums }: Log): number[] {
  const numbers = [spanUs, grainUs, blurUs];
  for (let index = 0; index < atUs.length; index++)
    numbers.push(atUs[index] - (index === 0 ? 0 : atUs[index - 1]), sums[index] - (index === 0 ? 0 : sums[index - 1]));
  return numbers;
}

function readLog(numbers: readonly number[]): Log {
  const [spanUs, grainUs, blurUs] = numbers;
  const atUs: number[] = [];
  const sums: number[] = [];
  for (let index = 3; index < numbers.length; index += 2) {
    atUs.push((atUs.at(-1) ?? 0) + numbers[index]);
    sums.push((sums.at(-1) ?? 0) + numbers[index + 1]);
  }
  return { spanUs, grainUs, blurUs, atUs, sums };
}
