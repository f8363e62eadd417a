import type { Cost } from "../../src/core/key.js";
import type { Rule } from "../../src/core/rule.js";
import { MEMORY_US } from "../../src/stores/operations.js";
import type { Act } from "./scenario.js";
import type { Granted, Start, Trace } from "./world.js";

/** A store that has not answered for less than this is not away. */
const AWAY_MS = 4_400;
/** A grant is used this long after its instant at most, beside a few usual round trips. */
const LATE_MS = 500;

/** A start that the store granted, as one of its keys saw it. */
interface Seen {
  readonly key: string;
  /** On the key's own timeline: instants before a clock was set back are moved as the store moves them. */
  readonly atUs: number;
  readonly decidedUs: number;
  readonly order: number;
  readonly rule: Rule;
  /** No more than was really used. */
  readonly units: Cost;
  readonly start: Start;
}

/** What is wrong with a run. */
export function judge(trace: Trace): string[] {
  const faults = [...trace.faults];
  for (const group of isForgetful(trace) ? [] : byKey(trace)) {
    faults.push(...overWindows(group), ...underGaps(group), ...overBuckets(group), ...sameTokens(group));
    faults.push(...duringHolds(trace, group));
  }
  if (isCalm(trace)) faults.push(...overPlaces(trace));
  faults.push(...lateGrants(trace), ...alone(trace));
  return faults;
}

/** A store whose clock jumps far ahead forgets its replies: one that was lost may be asked for again, and count twice. */
function isForgetful({ scenario: { acts, way } }: Trace): boolean {
  const isRough =
    way.lost > 0 || way.cut > 0 || way.heldUp > 0 || acts.some(({ kind }) => kind === "cut" || kind === "down");
  return isRough && acts.some((act) => act.kind === "jump" && act.byMs * 1000 >= MEMORY_US);
}

/** The starts that were really made, by key and by life of the store, in the order of their instants. */
function byKey({ starts, scenario }: Trace): Seen[][] {
  const isSetBack = scenario.acts.some((act) => act.kind === "jump" && act.byMs < 0);
  const groups = new Map<string, Seen[]>();
  for (const start of starts) {
    const { granted, asked, isUnused } = start;
    if (granted === undefined || isUnused) continue;
    const { keys, operation, made, reply } = granted;
    // Its reply may be from before the clock was set back.
    if (isSetBack && operation.isAgain) continue;
    keys.forEach((key, index) => {
      const { rule, cost } = operation.keys[index];
      const movedUs = made.movedUs[index];
      const most = asked.spent ?? Number.POSITIVE_INFINITY;
      const units = {
        rate: Math.min(cost.rate, most),
        window: Math.min(cost.window, most),
        quota: Math.min(cost.quota, most),
      };
      const name = `${key} ${made.epoch}`;
      const group = groups.get(name) ?? [];
      groups.set(name, group);
      const [atUs, decidedUs] = [start.startedUs + movedUs, reply.nowUs + movedUs];
      group.push({ key, atUs, decidedUs, order: made.order, rule, units, start });
    });
  }
  return [...groups.values()].map((group) => group.sort((a, b) => a.atUs - b.atUs || a.order - b.order));
}

/** Whether all starts obey the same limits; else each obeys its own, counting those decided before. */
function isUniform(group: readonly Seen[]): boolean {
  return (
    new Set(
      group.map(({ rule: { gapUs, rateCount, ratePerUs, burst, windows, fromAnswer } }) =>
        JSON.stringify([gapUs, rateCount, ratePerUs, burst, windows, fromAnswer]),
      ),
    ).size === 1
  );
}

function overWindows(group: readonly Seen[]): string[] {
  const faults: string[] = [];
  const uniform = isUniform(group);
  for (const last of group) {
    const { windows, fromAnswer } = last.rule;
    // Answers are what counts there, and they are later than starts.
    if (fromAnswer) continue;
    for (const { count, perUs } of windows) {
      // What was started before anybody had such a window the key may not remember.
      const since = group.filter((one) => one.rule.windows.some((window) => window.perUs >= perUs));
      const fromOrder = Math.min(...since.map(({ order }) => order));
      let units = 0;
      for (const one of group) {
        if (one.atUs > last.atUs || one.atUs <= last.atUs - perUs) continue;
        if (uniform || (one.order <= last.order && one.order >= fromOrder)) units += one.units.window;
      }
      if (units > count)
        faults.push(`${last.key}: ${units} units of ${count} within ${perUs} us up to ${last.start.startedUs} (L1)`);
    }
  }
  return faults;
}

function underGaps(group: readonly Seen[]): string[] {
  const uniform = isUniform(group);
  return group.slice(1).flatMap((later, index) => {
    const earlier = group[index];
    const { gapUs } = (earlier.order < later.order ? later : earlier).rule;
    const apartUs = later.atUs - earlier.atUs;
    // One with a shorter gap may come between.
    return apartUs < gapUs && (uniform || earlier.order < later.order)
      ? [`${later.key}: ${apartUs} us apart, at least ${gapUs} (L1)`]
      : [];
  });
}

function overBuckets(group: readonly Seen[]): string[] {
  const [first] = group;
  if (first === undefined || first.rule.rateCount === 0 || !isUniform(group)) return [];
  const { rateCount, ratePerUs, burst } = first.rule;
  let [owed, seenUs] = [0, first.atUs];
  for (const { atUs, key, units } of group) {
    owed = Math.max(0, owed - (atUs - seenUs) * rateCount) + units.rate * ratePerUs;
    seenUs = atUs;
    if (owed > burst * ratePerUs) return [`${key}: ${owed / ratePerUs} units in a bucket of ${burst} (L1)`];
  }
  return [];
}

/** Tokens grow with each start of a key that comes first. */
function sameTokens(group: readonly Seen[]): string[] {
  const own = group.filter(({ key, start }) => start.granted?.keys[0] === key);
  const tokens = new Set(own.map(({ start }) => start.token));
  return tokens.size === own.length ? [] : [`${group[0].key}: a token was given twice`];
}

/** Nobody is granted a start within a hold that the store knew of. */
function duringHolds({ holds }: Trace, group: readonly Seen[]): string[] {
  return group.flatMap(({ key, atUs, decidedUs, start }) => {
    const { made, operation } = start.granted as Granted;
    // Of a reply that was given again nobody knows when it was first given.
    if (operation.isAgain) return [];
    const hold = holds.find((one) => {
      const index = start.granted?.keys.indexOf(key) ?? 0;
      // Holds are told by the key's timeline of then; where that was moved, nothing is said.
      if (one.key !== key || one.made.epoch !== made.epoch) return false;
      const movedUs = made.movedUs[index];
      const isMoved = one.made.movedUs.some((us) => us !== movedUs);
      return !isMoved && one.nowUs + movedUs < decidedUs && atUs < one.untilUs + movedUs;
    });
    return hold === undefined
      ? []
      : [`${key}: a start ${hold.untilUs - start.startedUs} us before the end of a hold (L8)`];
  });
}

/** Nothing goes wrong on the way, and no process stands still. */
function isCalm({ scenario: { acts, way } }: Trace): boolean {
  const isFine = (kind: Act["kind"]): boolean => ["ask", "begin", "pause", "resume", "record"].includes(kind);
  return (
    acts.every(({ kind }) => isFine(kind)) && way.lost === 0 && way.cut === 0 && way.heldUp === 0 && way.twice === 0
  );
}

function overPlaces({ starts }: Trace): string[] {
  const limits = new Map<string, number>();
  const steps: { readonly key: string; readonly atMs: number; readonly by: 1 | -1 }[] = [];
  for (const { granted, atMs, endedMs } of starts) {
    if (granted === undefined) continue;
    granted.keys.forEach((key, index) => {
      limits.set(key, granted.operation.keys[index].rule.concurrency);
      steps.push({ key, atMs, by: 1 }, { key, atMs: endedMs, by: -1 });
    });
  }
  steps.sort((a, b) => a.atMs - b.atMs || a.by - b.by);
  const flying = new Map<string, number>();
  for (const { key, by } of steps) {
    const now = (flying.get(key) ?? 0) + by;
    flying.set(key, now);
    if (now > (limits.get(key) ?? Number.POSITIVE_INFINITY))
      return [`${key}: ${now} in flight of ${limits.get(key)} (L1)`];
  }
  return [];
}

/** A grant whose reply was held up is not used: a 429 may have come since. */
function lateGrants({ starts, scenario: { way }, processes }: Trace): string[] {
  return starts.flatMap(({ granted, startedUs, atMs, process }) => {
    if (granted === undefined || processes[process] === undefined) return [];
    const { made, reply, operation } = granted;
    if (operation.isAgain) return [];
    const dueMs = made.atMs + Math.max(0, startedUs - reply.nowUs) / 1000;
    const mostMs = LATE_MS + (6 * way.mostUs) / 1000;
    return atMs - dueMs > mostMs ? [`a grant was used ${Math.round(atMs - dueMs)} ms late (L8)`] : [];
  });
}

/** A process starts by itself only while the store is away, and says when on the store's clock. */
function alone({ starts, scenario }: Trace): string[] {
  const jumps = scenario.acts.some(({ kind }) => kind === "jump" || kind === "stop");
  return starts.flatMap(({ granted, deafMs, startedUs, storeUs }) => {
    if (granted !== undefined) return [];
    const faults =
      deafMs < AWAY_MS ? [`a start without the store, which answered ${Math.round(deafMs)} ms before (L17)`] : [];
    const offUs = Math.abs(startedUs - storeUs);
    if (!jumps && offUs > 3_000_000) faults.push(`a start of an outage is ${offUs} us off the store's clock`);
    return faults;
  });
}
