import { isCooldownForgotten } from "./cooldown.js";
import { ALWAYS_US, type KeyState } from "./keyState.js";
import { type AheadOf, aheadIn, claimsIn, isUnclaimed, noneAhead, waitsSince } from "./line.js";
import type { Start, Stop, StopKind, TakeKey, TakeOperation, TakeReply } from "./operation.js";
import { endLapsedPlaces } from "./places.js";
import { type Block, blockAt, bothBlocks, POLL_MOST_US, STANDBY_US } from "./ready.js";
import { isFollowed } from "./ruleNumbers.js";
import { countStart, dropOldTracks, isStale, isUsed, keep, logUnits, trackOf } from "./tracks.js";

/** Who has not come for this long after its turn is no longer counted as waiting. */
export const MISSED_US = 1_000_000;
/** Who needs several keys and has waited for longer than this has each of them kept for it, as in one process by default. */
const AGEING_US = 10_000_000;
/** What holds a key that is nobody's turn to end. */
const HOLDS: ReadonlySet<StopKind> = new Set(["cooldown", "probe", "pause", "quota", "headers"]);
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
  if (operation.keys.some(({ period }) => isStale(period, nowUs))) return { ...nothing(nowUs), isStalePeriod: true };
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
    stricterAt: states.findIndex(({ tracks }, index) =>
      tracks.some((track) => track.ruleId !== operation.keys[index].ruleId && isUsed(track, nowUs)),
    ),
    fleet: operation.member === "" ? 0 : Math.max(...states.map(({ members }) => members.length)),
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
  if (operation.member === "") return;
  keep(state.members, ({ name, seenUs }) => name !== operation.member && seenUs + MEMBER_US > nowUs);
  if (state.members.length < MEMBERS_MOST) state.members.push({ name: operation.member, seenUs: nowUs });
}

/** Whether the next start is possible within the horizon, and is this asker's to take. */
function mayStart(states: readonly KeyState[], operation: TakeOperation, taken: number, nowUs: number): boolean {
  let limitUs = nowUs + operation.horizonUs;
  // What starts in another period of the calendar has to be counted in that one.
  for (const { period } of operation.keys) if (period !== undefined) limitUs = Math.min(limitUs, period.untilUs - 1);
  const obstacle = obstacleOf(states, operation, nowUs, noneAhead);
  if (!isWithin(obstacle, limitUs)) return false;
  if (states.every(({ line }) => line.length === 0)) return true;
  const isTurn = operation.turnUs > 0 && operation.turnUs <= limitUs;
  if (taken === 0 && obstacle === undefined && isUnclaimed(states, operation, nowUs)) return true;
  const ahead = isTurn ? claimsIn(operation, nowUs) : aheadIn(operation, nowUs);
  return isWithin(obstacleOf(states, operation, nowUs, ahead), limitUs);
}

function isWithin(obstacle: Obstacle | undefined, limitUs: number): boolean {
  return obstacle === undefined || (!obstacle.block.isEvent && obstacle.block.againUs <= limitUs);
}

/** What lets a start wait longest, over all keys, when others go first at each. */
function obstacleOf(
  states: readonly KeyState[],
  operation: TakeOperation,
  nowUs: number,
  ahead: AheadOf,
): Obstacle | undefined {
  let found: Obstacle | undefined;
  for (let index = 0; index < states.length; index++) {
    const block = blockAt(states[index], operation.keys[index], nowUs, ahead(states[index], index));
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
  const startedUs = obstacleOf(states, operation, nowUs, noneAhead)?.block.againUs ?? nowUs;
  const place = placeName(operation, number);
  const unitsAfter: number[] = [];
  const previousUs: number[] = [];
  states.forEach((state, index) => {
    const key = operation.keys[index];
    previousUs.push(state.lastUs);
    state.units += key.cost.rate;
    state.starts += 1;
    unitsAfter.push(state.units);
    countStart(state, key, key.cost, startedUs, nowUs);
    state.lastUs = Math.max(state.lastUs, startedUs);
    if (state.tracks.some((track) => isFollowed(track.rule) && isUsed(track, nowUs))) {
      const expiresUs = startedUs + operation.leaseUs;
      const holdUntilUs = startedUs + operation.maxHoldUs;
      state.places.push({ id: place, expiresUs, holdUntilUs, units: key.cost.window });
    } else {
      // Nobody will tell a policy that is not in use when it was answered: it counts from itself.
      for (const track of state.tracks) if (track.rule.fromAnswer) logUnits(track, startedUs, key.cost.window);
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
  const next = obstacleOf(states, operation, nowUs, noneAhead);
  const joinedUs = waitsSince(operation, nowUs);
  const behind = obstacleOf(states, operation, nowUs, aheadIn(operation, nowUs));
  const at = behind?.lineKey ?? 0;
  const isFirm = mayKeep(next, behind, nowUs, states.length > 1 ? nowUs - joinedUs : 0);
  const patienceUs = isFirm ? STANDBY_US : lookWithinUs(operation);
  const turnUs = Math.min(ALWAYS_US, behind?.block.againUs ?? nowUs, nowUs + patienceUs);
  if (operation.ticket !== "") {
    // Who has not come by then is gone. Keys are kept for whoever asks as often as a slow store lets it.
    const againUs = isFirm ? nowUs + STANDBY_US : Math.min(turnUs, nowUs + ASK_AGAIN_US);
    const comesUs = isFirm ? againUs : againUs + lateUs(operation, nowUs);
    states.forEach(({ line, tracks }, index) => {
      const { cost, ruleId } = operation.keys[index];
      const isHere = isFirm || index === at || isHeavy(operation.keys[index]);
      const stands = isFirm ? "firm" : index === at ? "inLine" : "aside";
      if (isHere && line.length < LINE_MOST)
        line.push({ name: operation.ticket, turnUs: comesUs, joinedUs, cost, stands });
      // Whoever waits has not gone: its policy counts until it asks again.
      const own = tracks.find((track) => track.ruleId === ruleId);
      if (own !== undefined) own.usedUs = Math.max(own.usedUs, againUs + operation.leaseUs);
    });
  }
  const { kind = "queue", because = "" } = next?.block ?? {};
  return { key: next?.key ?? at, kind, readyUs: next?.block.readyUs ?? nowUs, turnUs, because };
}

/** How much later than told somebody came, a second at most: whose way is long will be as late again, and would find its turn gone each time. */
function lateUs({ turnUs }: TakeOperation, nowUs: number): number {
  return turnUs === 0 ? 0 : Math.max(0, Math.min(MISSED_US, nowUs - turnUs));
}

/**
 * Whether all keys are to be kept for somebody who has waited for so long: it is the first at each, and waits for what others give back.
 *
 * Else those who need one key only would take turns at each of them, and somebody who needs all at once would never find them free.
 */
function mayKeep(next: Obstacle | undefined, behind: Obstacle | undefined, nowUs: number, waitedUs: number): boolean {
  if (next === undefined || behind === undefined || waitedUs <= AGEING_US) return false;
  const { isEvent, kind, readyUs, againUs } = next.block;
  return isEvent && !HOLDS.has(kind) && readyUs <= nowUs + POLL_MOST_US && againUs === behind.block.againUs;
}

/** Others save up with whoever wants much: it says within one lease that it is still there. */
function lookWithinUs({ keys, leaseUs }: TakeOperation): number {
  return keys.some(isHeavy) ? Math.max(leaseUs, STANDBY_US) : ALWAYS_US;
}

/** Whether it may have to be saved up for. */
function isHeavy({ cost }: TakeKey): boolean {
  return cost.rate > 1 || cost.window > 1;
}
