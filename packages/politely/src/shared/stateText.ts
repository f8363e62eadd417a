import { StoreError } from "../errors.js";
import type { CooldownState } from "./cooldown.js";
import type { KeyState, Stand, Ticket, Track } from "./keyState.js";
import { logOf, logPairs } from "./windowLog.js";

/** The form written now. A form once written is read for ever: a new one gets a new number and a reader of its own. */
export const STATE_VERSION = 1;

/** A key's state as text. */
export function stateText(state: KeyState): string {
  const { cooldown, headroom } = state;
  return JSON.stringify([
    STATE_VERSION,
    [
      state.seenUs,
      state.lastUs,
      state.answeredUs,
      state.units,
      state.starts,
      state.throttled,
      state.token,
      state.slowUs,
      state.heldUs,
    ],
    state.pausedUntilUs,
    cooldown === undefined ? 0 : cooldownList(cooldown),
    state.probe,
    headroom === undefined
      ? 0
      : [headroom.gapUs, Math.max(0, headroom.holdUntilUs), headroom.untilUs, headroom.startedUs, headroom.because],
    state.tracks.map(trackList),
    state.places.map(({ id, expiresUs, holdUntilUs, units }) => [id, expiresUs, holdUntilUs, units]),
    state.line.map(ticketList),
    state.members.map(({ name, seenUs }) => [name, seenUs]),
    state.memos.map(({ asker, sequence, atUs, reply }) => [asker, sequence, atUs, reply]),
  ]);
}

/** Reads what `stateText` wrote, in this version or an earlier one. Throws `StoreError` for anything else, naming the key. */
export function readState(text: string, key: string): KeyState {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch (cause) {
    throw foreign(key, cause);
  }
  if (!Array.isArray(list) || typeof list[0] !== "number") throw foreign(key, undefined);
  if (list[0] > STATE_VERSION) {
    throw new StoreError(
      `The state of "${key}" has version ${list[0]}, and this version of politely reads up to ${STATE_VERSION}. Update politely here, too.`,
      { isLasting: true },
    );
  }
  try {
    return readVersion1(list as unknown as Version1);
  } catch (cause) {
    throw foreign(key, cause);
  }
}

type Version1 = readonly [
  number,
  readonly [number, number, number, number, number, number, number, number, number?],
  number,
  CooldownList | 0,
  string,
  readonly [number, number, number, number, string] | 0,
  readonly TrackList[],
  readonly (readonly [string, number, number, number])[],
  readonly TicketList[],
  readonly (readonly [string, number])[],
  readonly (readonly [string, number, number, string])[],
];

function readVersion1(list: Version1): KeyState {
  const [, numbers, pausedUntilUs, cooldown, probe, headroom, tracks, places, line, members, memos] = list;
  // The last one came later than the others.
  const [seenUs, lastUs, answeredUs, units, starts, throttled, token, slowUs, heldUs = 0] = numbers;
  if (numbers.length < 8 || numbers.length > 9 || ![...numbers, pausedUntilUs].every(Number.isFinite)) {
    throw new TypeError("a number is missing");
  }
  return {
    seenUs,
    lastUs,
    answeredUs,
    units,
    starts,
    throttled,
    token,
    slowUs,
    heldUs,
    pausedUntilUs,
    cooldown: cooldown === 0 ? undefined : readCooldown(cooldown),
    probe,
    headroom: headroom === 0 ? undefined : readHeadroom(headroom),
    tracks: tracks.map(readTrack),
    places: places.map(([id, expiresUs, holdUntilUs, unitsHeld]) => ({ id, expiresUs, holdUntilUs, units: unitsHeld })),
    line: line.map(readTicket),
    members: members.map(([name, memberSeenUs]) => ({ name, seenUs: memberSeenUs })),
    memos: memos.map(([asker, sequence, atUs, reply]) => ({ asker, sequence, atUs, reply })),
  };
}

/** What comes after the first three is left out where it is the usual, and came later: one unit of each kind, and how it stands. */
type TicketList = readonly [string, number, number, number?, number?, number?, number?];

const STANDS: readonly Stand[] = ["inLine", "firm", "aside"];

function ticketList({ name, turnUs, joinedUs, cost, stands }: Ticket): TicketList {
  const { rate, window, quota } = cost;
  const isUsual = rate === 1 && window === 1 && quota === 1 && stands === "inLine";
  return isUsual ? [name, turnUs, joinedUs] : [name, turnUs, joinedUs, rate, window, quota, STANDS.indexOf(stands)];
}

function readTicket([name, turnUs, joinedUs, rate = 1, window = 1, quota = 1, stands = 0]: TicketList): Ticket {
  return { name, turnUs, joinedUs, cost: { rate, window, quota }, stands: STANDS[stands] ?? "inLine" };
}

function readHeadroom([gapUs, holdUntilUs, untilUs, startedUs, because]: readonly [
  number,
  number,
  number,
  number,
  string,
]): KeyState["headroom"] {
  return { gapUs, holdUntilUs, untilUs, startedUs, because };
}

type CooldownList = readonly [number, number, number, number, boolean, boolean, CooldownState["probe"], number, string];

function cooldownList(state: CooldownState): CooldownList {
  const { untilUs, beganUs, throttleStep, errorStep, throttleRaised, errorRaised, probe, probeAtUs, because } = state;
  return [untilUs, beganUs, throttleStep, errorStep, throttleRaised, errorRaised, probe, probeAtUs, because];
}

function readCooldown(list: CooldownList): CooldownState {
  const [untilUs, beganUs, throttleStep, errorStep, throttleRaised, errorRaised, probe, probeAtUs, because] = list;
  return { untilUs, beganUs, throttleStep, errorStep, throttleRaised, errorRaised, probe, probeAtUs, because };
}

type TrackList = readonly [
  string,
  readonly [number, number, number, number, readonly number[], number, string, number, boolean],
  readonly [number, number, number, number],
  readonly [number, number, number, number],
  readonly (readonly number[])[],
];

function trackList({ ruleId, rule, usedUs, sinceUs, owed, owedUs, logs, ...quota }: Track): TrackList {
  const { gapUs, rateCount, ratePerUs, burst, windows, concurrency, calendar, fromAnswer } = rule;
  return [
    ruleId,
    [gapUs, rateCount, ratePerUs, burst, windows, rule.quota, calendar, concurrency, fromAnswer],
    [usedUs, sinceUs, owed, owedUs],
    [quota.quotaIndex, quota.quotaUsed, quota.quotaSinceUs, quota.quotaUntilUs],
    logs.map((log) => differences(logPairs(log))),
  ];
}

function readTrack([ruleId, numbers, paced, spent, logs]: TrackList): Track {
  const [gapUs, rateCount, ratePerUs, burst, windows, quota, calendar, concurrency, fromAnswer] = numbers;
  const [usedUs, sinceUs, owed, owedUs] = paced;
  const [quotaIndex, quotaUsed, quotaSinceUs, quotaUntilUs] = spent;
  return {
    ruleId,
    rule: { gapUs, rateCount, ratePerUs, burst, windows, quota, calendar, concurrency, fromAnswer },
    usedUs,
    sinceUs,
    owed,
    owedUs,
    logs: logs.map((pairs) => logOf(sums(pairs))),
    quotaIndex,
    quotaUsed,
    quotaSinceUs,
    quotaUntilUs,
  };
}

/** Instants as differences from the one before: a third of the length. */
function differences(pairs: readonly number[]): number[] {
  return pairs.map((value, index) => (index % 2 === 0 && index > 0 ? value - pairs[index - 2] : value));
}

function sums(pairs: readonly number[]): number[] {
  let atUs = 0;
  return pairs.map((value, index) => {
    if (index % 2 === 1) return value;
    atUs += value;
    return atUs;
  });
}

function foreign(key: string, cause: unknown): StoreError {
  return new StoreError(
    `The value stored for "${key}" is not one of politely's. Give the store a prefix or table of its own, or remove that value.`,
    { cause, isLasting: true },
  );
}
