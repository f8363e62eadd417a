import type { KeyState, Ticket } from "./keyState.js";
import type { TakeKey, TakeOperation } from "./operation.js";
import { type Ahead, NOBODY, POLL_MOST_US, savedUpAt } from "./ready.js";

/** A turn that nobody took for this long is for whoever comes. */
const UNCLAIMED_US = 100_000;
/** Who comes at its turn still lets those go first who have waited for so much longer and are about to come. */
const SENIOR_US = 1_000_000;
/** Since when somebody waits who runs already and has lost its place: since before everybody else. */
export const RUNS_US = 1;

/** Says who goes first at a key, given its state and which of the operation's keys it is. */
export type AheadOf = (state: KeyState, index: number) => Ahead;

/** Nobody goes first anywhere. */
export const noneAhead: AheadOf = () => NOBODY;

/** Since when an asker waits: not since later than now, as it would seem after the clock was set back. */
export function waitsSince({ joinedUs }: TakeOperation, nowUs: number): number {
  return joinedUs === 0 ? nowUs : Math.min(joinedUs, nowUs);
}

/** Whether nobody is about to take a turn, at any key: it is not near, or there has been time enough to take it; and nobody who came before saves up for it. */
export function isUnclaimed(states: readonly KeyState[], asker: TakeOperation, nowUs: number): boolean {
  const sinceUs = waitsSince(asker, nowUs);
  return states.every((state, index) =>
    state.line.every(
      (ticket) =>
        !isDue(ticket, nowUs) &&
        !(isBefore(ticket, asker, sinceUs) && isPutOff(ticket, state, asker.keys[index], nowUs)),
    ),
  );
}

/** Those in the line of a key who came before an asker and may still take their turn. */
export function aheadIn(asker: TakeOperation, nowUs: number): AheadOf {
  const sinceUs = waitsSince(asker, nowUs);
  return (state, index) =>
    together(state.line, (ticket) => {
      if (!isBefore(ticket, asker, sinceUs) || !mayCome(ticket, nowUs)) return false;
      return ticket.stands !== "aside" || isDue(ticket, nowUs) || isPutOff(ticket, state, asker.keys[index], nowUs);
    });
}

/** Those of them whom an asker lets go first at its own turn: who waits for much longer and is about to come, or saves up and would have to begin anew. */
export function claimsIn(asker: TakeOperation, nowUs: number): AheadOf {
  const sinceUs = waitsSince(asker, nowUs);
  return (state, index) =>
    together(state.line, (ticket) => {
      if (ticket.joinedUs <= sinceUs - SENIOR_US && isDue(ticket, nowUs)) return true;
      return isBefore(ticket, asker, sinceUs) && isPutOff(ticket, state, asker.keys[index], nowUs);
    });
}

/** Of two who wait since one instant, one is before the other. */
function isBefore({ name, joinedUs }: Ticket, asker: TakeOperation, sinceUs: number): boolean {
  return joinedUs < sinceUs || (joinedUs === sinceUs && (asker.joinedUs === 0 || name < asker.ticket));
}

function mayCome({ turnUs }: Ticket, nowUs: number): boolean {
  return turnUs + UNCLAIMED_US > nowUs;
}

/** Whether it is about to come. Who runs already, without a place, counts as that at any time, and so does who has its keys kept. */
function isDue(ticket: Ticket, nowUs: number): boolean {
  const { turnUs, joinedUs, stands } = ticket;
  return (turnUs <= nowUs + POLL_MOST_US || joinedUs === RUNS_US || stands === "firm") && mayCome(ticket, nowUs);
}

/** Whether it wants more than the asker, and could no longer have it at its turn if that started now. */
function isPutOff(ticket: Ticket, state: KeyState, key: TakeKey, nowUs: number): boolean {
  const { cost, turnUs } = ticket;
  if ((cost.rate <= key.cost.rate && cost.window <= key.cost.window) || !mayCome(ticket, nowUs)) return false;
  return savedUpAt(state, { ...key, cost }, nowUs, { starts: 1, ...key.cost }) > Math.max(nowUs, turnUs);
}

function together(line: readonly Ticket[], isAhead: (ticket: Ticket) => boolean): Ahead {
  if (line.length === 0) return NOBODY;
  const ahead = { starts: 0, rate: 0, window: 0, quota: 0 };
  for (const ticket of line) {
    if (!isAhead(ticket)) continue;
    ahead.starts += 1;
    ahead.rate += ticket.cost.rate;
    ahead.window += ticket.cost.window;
    ahead.quota += ticket.cost.quota;
  }
  return ahead;
}
