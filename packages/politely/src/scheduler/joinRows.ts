import type { WindowRule } from "../core/rule.js";
import type { CooldownState } from "../shared/cooldown.js";
import { adoptHolds } from "./flight.js";
import { loggedWindows, unitedWindow } from "./formerLimits.js";
import type { Ledger } from "./ledger.js";
import { ROW } from "./slab.js";
import { type Slowdown, SOURCES } from "./slowdowns.js";
import { NO_LOG } from "./windowLogs.js";

const { LAST_US, OWED, SEEN_US } = ROW;

/** Two incidents as one: the later hold, with the steps that either has climbed. */
export function laterCooldown(a: CooldownState | undefined, b: CooldownState): CooldownState {
  if (a === undefined) return b;
  return {
    ...(a.untilUs > b.untilUs ? a : b),
    beganUs: Math.max(a.beganUs, b.beganUs),
    throttleStep: Math.max(a.throttleStep, b.throttleStep),
    errorStep: Math.max(a.errorStep, b.errorStep),
    throttleRaised: a.throttleRaised || b.throttleRaised,
    errorRaised: a.errorRaised || b.errorRaised,
  };
}

/**
 * Makes a row part of another one under the same rule, since their keys are one by now. Nothing is forgiven: the later last start
 * and hold count, the larger debt, the starts of both in windows and quota, and everybody in flight.
 *
 * Permits from before still lead to `from`, which stays in use until none can be open. Of buckets that are gone and may come back,
 * the one that is owed to for longer is kept.
 */
export function joinRows(ledger: Ledger, from: number, into: number, nowUs: number): void {
  const { rule } = ledger.profileOf(into);
  // Before the words are looked at: what is gone may bring another bucket with it.
  joinFormer(ledger, from, into);
  const theirs = ledger.slab.chunkOf(from).words;
  const words = ledger.slab.chunkOf(into).words;
  const [at, own] = [ledger.slab.wordOf(from), ledger.slab.wordOf(into)];
  words[own + LAST_US] = Math.max(words[own + LAST_US], theirs[at + LAST_US]);
  if (rule.rateCount !== 0) {
    // Both were counted up to now when the rule was put in force.
    words[own + OWED] = Math.max(words[own + OWED], theirs[at + OWED]);
    words[own + SEEN_US] = Math.max(words[own + SEEN_US], theirs[at + SEEN_US]);
  }
  rule.windows.forEach((window, index) => {
    ledger.setLog(into, index, ledger.logs.join(ledger.log(into, index), ledger.log(from, index), window));
  });
  if (rule.quota !== undefined) ledger.quotas.spend(into, rule.quota, ledger.quotas.used(from, rule.quota));
  joinStops(ledger, from, into);
  const holds = ledger.holds.get(from);
  if (holds !== undefined) adoptHolds(ledger.holdsOf(into), holds, into);
  ledger.loose.move(from, into, nowUs);
  // No start from before may take out what the other row has brought along.
  ledger.ties.cut(into, nowUs, ledger.ties.hasForgiven(from));
  // From here on what is said about the one is about the other; before that it is forgotten, so that its parts are not.
  ledger.setCooldown(from, undefined);
  ledger.loose.moved.add(from, { into, joinedUs: nowUs });
  ledger.forget(from);
  ledger.setPause(from, undefined);
  ledger.quotas.clear(from);
  theirs[at + LAST_US] = Number.NEGATIVE_INFINITY;
  theirs[at + OWED] = 0;
}

/** Lets a new row begin with what another one owes, counted as there. The rule that the numbers are of is the other's: convert it afterwards. */
export function copyRow(ledger: Ledger, from: number, into: number, nowUs: number): void {
  const theirs = ledger.slab.chunkOf(from).words;
  const words = ledger.slab.chunkOf(into).words;
  const [at, own] = [ledger.slab.wordOf(from), ledger.slab.wordOf(into)];
  for (const offset of [LAST_US, OWED, SEEN_US]) words[own + offset] = theirs[at + offset];
  const { quotaAt } = ledger.slab.layout;
  if (quotaAt >= 0) words.set(theirs.slice(at + quotaAt, at + quotaAt + 2), own + quotaAt);
  const former = ledger.former.get(from);
  if (former !== undefined) ledger.former.set(into, former);
  copyLogs(ledger, from, into, nowUs);
  joinStops(ledger, from, into);
}

function copyLogs(ledger: Ledger, from: number, into: number, nowUs: number): void {
  const windows = loggedWindows(ledger, from);
  windows.forEach((window, index) => {
    ledger.logs.release(ledger.log(into, index));
    ledger.setLog(into, index, ledger.logs.copy(ledger.log(from, index), window, window));
  });
  const holds = ledger.holds.get(from);
  if (holds === undefined) return;
  ledger.holdsOf(into).answeredUs = holds.answeredUs;
  // Their answers are heard at the other row, so they count from now here.
  if (holds.pendingUnits > 0) ledger.logStart(into, nowUs, holds.pendingUnits, windows);
}

/** What a person or a site has asked for at one row holds at another one too. */
export function joinStops(ledger: Ledger, from: number, into: number): void {
  const { pauses, cooldowns, slowdowns } = ledger;
  const state = cooldowns.get(from);
  if (state !== undefined) ledger.setCooldown(into, laterCooldown(cooldowns.get(into), state));
  const untilUs = pauses.get(from);
  if (untilUs !== undefined) ledger.setPause(into, Math.max(untilUs, pauses.get(into) ?? untilUs));
  for (const source of SOURCES) {
    const asked = slowdowns.get(from, source);
    if (asked !== undefined) slowdowns.set(into, source, slower(slowdowns.get(into, source), asked));
  }
  const learned = slowdowns.learned.get(from);
  if (learned !== undefined && !slowdowns.learned.has(into)) slowdowns.learned.set(into, learned);
}

function slower(a: Slowdown | undefined, b: Slowdown): Slowdown {
  if (a === undefined) return b;
  return {
    gapUs: Math.max(a.gapUs, b.gapUs),
    holdUntilUs: Math.max(a.holdUntilUs, b.holdUntilUs),
    untilUs: Math.max(a.untilUs, b.untilUs),
    because: a.gapUs > b.gapUs ? a.because : b.because,
  };
}

/** Keeps of limits that are gone the bucket that is owed to for longer, and what both have spent of a quota and started in windows. */
function joinFormer(ledger: Ledger, from: number, into: number): void {
  const theirs = ledger.former.get(from);
  const mine = ledger.former.get(into);
  const longer = (theirs?.untilUs ?? 0) > (mine?.untilUs ?? 0) ? theirs : mine;
  if (longer === undefined) return;
  const { rule } = ledger.profileOf(into);
  if (longer === theirs && rule.rateCount === 0) {
    const words = ledger.slab.chunkOf(into).words;
    const [at, own] = [ledger.slab.wordOf(from), ledger.slab.wordOf(into)];
    for (const offset of [OWED, SEEN_US]) words[own + offset] = ledger.slab.chunkOf(from).words[at + offset];
  }
  const quota = longer.rule.quota ?? theirs?.rule.quota ?? mine?.rule.quota;
  if (rule.quota === undefined && quota !== undefined) {
    const spent = [
      { slot: from, former: theirs },
      { slot: into, former: mine },
    ].map(({ slot, former }) => (former?.rule.quota === undefined ? 0 : ledger.quotas.used(slot, former.rule.quota)));
    ledger.quotas.restart(into, quota, spent[0] + spent[1]);
  }
  ledger.former.set(into, { ...longer, rule: { ...longer.rule, quota }, windows: joinGone(ledger, from, into) });
}

/** Counts the starts of both rows in a window that looks back as far as those that are gone at either; returns all windows there are logs of. */
function joinGone(ledger: Ledger, from: number, into: number): readonly WindowRule[] {
  const { rule } = ledger.profileOf(into);
  const at = rule.windows.length;
  const gone = unitedWindow([from, into].flatMap((slot) => loggedWindows(ledger, slot).slice(at)));
  if (gone === undefined) return rule.windows;
  ledger.makeRoomFor(rule, at + 1);
  const known = [from, into].map((slot) => mostKnowing(ledger, slot));
  const copy = ledger.logs.copy(known[0], gone, gone);
  const joined = ledger.logs.join(copy, known[1], gone);
  ledger.logs.release(ledger.log(into, at));
  ledger.setLog(into, at, joined);
  return [...rule.windows, gone];
}

/** The log of a row that goes back furthest. */
function mostKnowing(ledger: Ledger, slot: number): number {
  const logs = loggedWindows(ledger, slot).map((_, index) => ledger.log(slot, index));
  return logs.reduce(
    (best, log) => (ledger.logs.knownSinceUs(log) < ledger.logs.knownSinceUs(best) ? log : best),
    NO_LOG,
  );
}
