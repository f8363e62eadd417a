import { isCooldownForgotten } from "../cooldown.js";
import { ALWAYS_US, type KeyState, type Ticket } from "./keyState.js";
import type { Start, Stop, TakeOperation, TakeReply } from "./operation.js";
import { endLapsedPlaces } from "./places.js";
import { type Block, blockAt, bothBlocks, POLL_MOST_US } from "./ready.js";
import { countStart, dropOldTracks, keep, trackOf } from "./tracks.js";

/** A turn that nobody took for this long is for whoever comes. */
const UNCLAIMED_US = 100_000;
/** Who has not come for this long after its turn is no longer counted as waiting. */
export const MISSED_US = 1_000_000;
/** Who comes at its turn still lets those go first who have waited for so much longer and are about to come. */
const SENIOR_US = 1_000_000;
/** Since when somebody waits who runs already and has lost its place: since before everybody else. */
export const RUNS_US = 1;
/** However far away its turn is, whoever waits asks again after this: those before it may be gone, or the policy be another. */
export const ASK_AGAIN_US = 120_000_000;
/** How long a process counts as part of the fleet after it was seen. */
export const MEMBER_US = 300_000_000;
/** At most so many are remembered; further ones are simply not counted. */
const MEMBERS_MOST = 1_000;
const LINE_MOST = 4_000;

/** What stands in the way, over all keys: at `key` for longest, at `lineKey` until it is time to look again. */
interface Obstacle {
  readonly key: number;
  readonly lineKey: number;
  readonly block: Block;
}

/**
 * Grants up to `count` starts, each taking from all keys or from none.
 *
 * A start that is possible within the horizon is granted for the instant at which it is. Who comes without a turn goes
 * behind those who were told to come back; who comes at its turn takes the next start there is.
 */
export function take(states: readonly KeyState[], operation: TakeOperation, nowUs: number): TakeReply {
  const stale = operation.keys.some(
    ({ period }) => period !== undefined && (nowUs < period.fromUs || nowUs >= period.untilUs),
  );
  if (stale) return { ...nothing(nowUs), isStalePeriod: true };
  for (let index = 0; index < states.length; index++) prepare(states[index], operation, index, nowUs);
  const starts: Start[] = [];
  let asked = operation;
  while (starts.length < operation.count && mayStart(states, asked, starts.length, nowUs)) {
    starts.push(start(states, operation, starts.length, nowUs));
    // It had its turn: for more it goes to the end of the line.
    if (starts.length === 1) asked = { ...operation, turnUs: 0, joinedUs: 0 };
  }
  const isDone = starts.length === operation.count && !operation.hasMore;
  const stop = isDone ? undefined : standInLine(states, asked, nowUs);
  return {
    nowUs,
    starts,
    stop,
    isCooling: states.some(({ cooldown }) => cooldown !== undefined),
    stricterAt: states.findIndex(({ tracks }) => tracks.length > 1),
    fleet: operation.member === "" ? 0 : states[0].members.length,
    isStalePeriod: false,
  };
}

function nothing(nowUs: number): TakeReply {
  return { nowUs, starts: [], stop: undefined, isCooling: false, stricterAt: -1, fleet: 0, isStalePeriod: false };
}

/** Brings a key up to date: what has lapsed is over, and the asker's own place in line is open again. */
function prepare(state: KeyState, operation: TakeOperation, index: number, nowUs: number): void {
  const { rule, ruleId, slowUs } = operation.keys[index];
  endLapsedPlaces(state, nowUs);
  if (state.cooldown !== undefined && isCooldownForgotten(state.cooldown, nowUs)) {
    state.cooldown = undefined;
    state.probe = "";
  }
  const track = trackOf(state, ruleId, rule, nowUs);
  track.usedUs = Math.max(track.usedUs, nowUs + operation.leaseUs);
  dropOldTracks(state, ruleId, nowUs);
  state.slowUs = Math.max(state.slowUs, slowUs);
  keep(state.line, ({ name, turnUs }) => name !== operation.ticket && turnUs + MISSED_US > nowUs);
  if (operation.member === "" || index > 0) return;
  keep(state.members, ({ name, seenUs }) => name !== operation.member && seenUs + MEMBER_US > nowUs);
  if (state.members.length < MEMBERS_MOST) state.members.push({ name: operation.member, seenUs: nowUs });
}

/** Whether the next start is possible within the horizon, and is this asker's to take. */
function mayStart(states: readonly KeyState[], operation: TakeOperation, taken: number, nowUs: number): boolean {
  let limitUs = nowUs + operation.horizonUs;
  // What starts in another period of the calendar has to be counted in that one.
  for (const { period } of operation.keys) if (period !== undefined) limitUs = Math.min(limitUs, period.untilUs - 1);
  const obstacle = obstacleOf(states, operation, nowUs, () => 0);
  if (!isWithin(obstacle, limitUs)) return false;
  if (states.every(({ line }) => line.length === 0)) return true;
  const isTurn = operation.turnUs > 0 && operation.turnUs <= limitUs;
  if (taken === 0 && obstacle === undefined && isUnclaimed(states, nowUs)) return true;
  const sinceUs = waitsSince(operation, nowUs);
  const ahead = isTurn ? seniorsIn(sinceUs - SENIOR_US, nowUs) : aheadIn(operation, sinceUs, nowUs);
  return isWithin(obstacleOf(states, operation, nowUs, ahead), limitUs);
}

function isWithin(obstacle: Obstacle | undefined, limitUs: number): boolean {
  return obstacle === undefined || (!obstacle.block.isEvent && obstacle.block.againUs <= limitUs);
}

/** Whether nobody is about to take a turn: it is not near, or there has been time enough to take it. */
function isUnclaimed(states: readonly KeyState[], nowUs: number): boolean {
  return states.every(({ line }) => line.every((ticket) => !isDue(ticket, nowUs)));
}

/** Whether it is about to come. Who runs already, without a place, counts as that at any time. */
function isDue({ turnUs, joinedUs }: Ticket, nowUs: number): boolean {
  return (turnUs <= nowUs + POLL_MOST_US || joinedUs === RUNS_US) && turnUs + UNCLAIMED_US > nowUs;
}

/** Since when an asker waits: not since later than now, as it would seem after the clock was set back. */
function waitsSince({ joinedUs }: TakeOperation, nowUs: number): number {
  return joinedUs === 0 ? nowUs : Math.min(joinedUs, nowUs);
}

/** Counts those in the line of a key who came before an asker and may still take their turn. Of two who wait since one instant, one is before the other. */
function aheadIn(asker: TakeOperation, sinceUs: number, nowUs: number): (state: KeyState) => number {
  return ({ line }) => {
    let ahead = 0;
    for (const { name, joinedUs, turnUs } of line) {
      const isBefore = joinedUs < sinceUs || (joinedUs === sinceUs && (asker.joinedUs === 0 || name < asker.ticket));
      if (isBefore && turnUs + UNCLAIMED_US > nowUs) ahead += 1;
    }
    return ahead;
  };
}

/** Counts those of them who are about to take it. */
function seniorsIn(sinceUs: number, nowUs: number): (state: KeyState) => number {
  return ({ line }) => {
    let ahead = 0;
    for (const ticket of line) if (ticket.joinedUs <= sinceUs && isDue(ticket, nowUs)) ahead += 1;
    return ahead;
  };
}

/** What lets a start wait longest, over all keys, when so many others go first at each. */
function obstacleOf(
  states: readonly KeyState[],
  operation: TakeOperation,
  nowUs: number,
  ahead: (state: KeyState) => number,
): Obstacle | undefined {
  let found: Obstacle | undefined;
  for (let index = 0; index < states.length; index++) {
    const block = blockAt(states[index], operation.keys[index], nowUs, ahead(states[index]));
    if (block === undefined) continue;
    if (found === undefined) {
      found = { key: index, lineKey: index, block };
      continue;
    }
    const key = block.atUs > found.block.atUs ? index : found.key;
    const lineKey = block.againUs > found.block.againUs ? index : found.lineKey;
    found = { key, lineKey, block: bothBlocks(found.block, block) };
  }
  return found;
}

/** Takes one start from every key. */
function start(states: readonly KeyState[], operation: TakeOperation, number: number, nowUs: number): Start {
  const startedUs = obstacleOf(states, operation, nowUs, () => 0)?.block.againUs ?? nowUs;
  const place = placeName(operation, number);
  const unitsAfter: number[] = [];
  const previousUs: number[] = [];
  states.forEach((state, index) => {
    const key = operation.keys[index];
    previousUs.push(state.lastUs);
    state.units += key.cost.rate;
    state.starts += 1;
    unitsAfter.push(state.units);
    countStart(state, key, key.cost, startedUs);
    state.lastUs = Math.max(state.lastUs, startedUs);
    if (state.tracks.some(({ rule }) => rule.concurrency > 0 || rule.fromAnswer)) {
      const expiresUs = startedUs + operation.leaseUs;
      const holdUntilUs = startedUs + operation.maxHoldUs;
      state.places.push({ id: place, expiresUs, holdUntilUs, units: key.cost.window });
    }
    sendProbe(state, place, startedUs);
  });
  const [first] = states;
  first.token = Math.max(first.token + 1, nowUs);
  return { startedUs, token: first.token, unitsAfter, previousUs };
}

/** The name of the place that a start takes. */
export function placeName({ asker, sequence }: { asker: string; sequence: number }, number: number): string {
  return `${asker}#${sequence}#${number}`;
}

/** A start at a key that has a cooldown is the probe, or proof that nobody waits for one any more. */
function sendProbe(state: KeyState, place: string, startedUs: number): void {
  const { cooldown } = state;
  if (cooldown === undefined || cooldown.probe === "done") return;
  const isOut = cooldown.probe === "out";
  state.cooldown = { ...cooldown, probe: isOut ? "done" : "out", probeAtUs: isOut ? cooldown.probeAtUs : startedUs };
  state.probe = isOut ? "" : place;
}

/** Finds out when to come back, and remembers that somebody will. */
function standInLine(states: readonly KeyState[], operation: TakeOperation, nowUs: number): Stop {
  const next = obstacleOf(states, operation, nowUs, () => 0);
  const joinedUs = waitsSince(operation, nowUs);
  const behind = obstacleOf(states, operation, nowUs, aheadIn(operation, joinedUs, nowUs));
  const at = behind?.lineKey ?? 0;
  const turnUs = Math.min(ALWAYS_US, behind?.block.againUs ?? nowUs);
  if (operation.ticket !== "") {
    const { line } = states[at];
    // Who has not come by then is gone.
    const againUs = Math.min(turnUs, nowUs + ASK_AGAIN_US);
    if (line.length < LINE_MOST) line.push({ name: operation.ticket, turnUs: againUs, joinedUs });
    // Whoever waits has not gone: its policy counts until it asks again.
    states.forEach(({ tracks }, index) => {
      const own = tracks.find(({ ruleId }) => ruleId === operation.keys[index].ruleId);
      if (own !== undefined) own.usedUs = Math.max(own.usedUs, againUs + operation.leaseUs);
    });
  }
  const { kind = "queue", because = "" } = next?.block ?? {};
  return { key: next?.key ?? at, kind, readyUs: next?.block.readyUs ?? nowUs, turnUs, because };
}
