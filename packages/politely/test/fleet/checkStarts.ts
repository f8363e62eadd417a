/*
 * Judges what a fleet did by its merged log. Nothing here is clever, and nothing comes from the code under test: every start is
 * compared with every earlier start of its key, as a person would do with the list and a pencil.
 */

const maxStarts = 30_000;

/** One start, as a process logged it. Instants are whole microseconds of one timeline, whichever it is. */
export interface LoggedStart {
  readonly key: string;
  readonly startedUs: number;
  /** What it took of rate and windows. Default 1. */
  readonly units?: number;
  /** When its place was free again; absent: never, as far as the log says. */
  readonly releasedUs?: number;
  /** It was returned `unused`: it only took a place. */
  readonly unused?: boolean;
  /** Grows with each start of the key. */
  readonly token?: number;
}

/** What the starts of one key have to keep to. What is absent does not limit. */
export interface StartRule {
  /** Two starts are never closer than this. */
  readonly gapUs?: number;
  /** Any span of t µs holds at most `burst + t * count / perUs` units. */
  readonly rate?: { readonly count: number; readonly perUs: number; readonly burst: number };
  /** Any (t, t + perUs] holds at most `count` units. */
  readonly windows?: readonly { readonly count: number; readonly perUs: number }[];
  /** At most so many hold a place at once. A place that is free at an instant may be taken at that instant. */
  readonly concurrency?: number;
  /** How long a place counts as held when its release was never logged. Default: for ever. */
  readonly heldUs?: number;
  /** Nothing starts strictly inside one of these. */
  readonly holds?: readonly { readonly fromUs: number; readonly untilUs: number }[];
  /** How much too early a start may be, for logs of a clock that is not the limiter's. Default 0. */
  readonly slackUs?: number;
}

/** One start that should not have been. */
export interface Violation {
  readonly kind: "gap" | "rate" | "window" | "concurrency" | "hold" | "token";
  readonly key: string;
  readonly startedUs: number;
  /** How many units, or starts, were too many at that moment: the greatest of all violations is the overshoot. */
  readonly extra: number;
  /** What was found, with numbers. */
  readonly says: string;
}

/**
 * Finds every start that breaks `rule`, key by key: one violation for each limit and start, with the worst that this start made of
 * it. For a limit over several keys together, give all starts the same key.
 *
 * Throws for what is no whole number, in log or rule, since nothing could be found then, and for more than 30,000 starts of a key.
 */
export function checkStarts(starts: readonly LoggedStart[], rule: StartRule): Violation[] {
  checkNumbers(rule);
  return [...byKey(starts)].flatMap(([key, all]) => {
    // What came back unused was never sent.
    const sent = all.filter(({ unused }) => unused !== true);
    const { slackUs = 0, gapUs = 0, rate, windows = [], concurrency, heldUs, holds = [] } = rule;
    const found: Finding[] = [];
    if (gapUs > 0) found.push(...gapFindings(sent, gapUs - slackUs));
    if (rate !== undefined) found.push(...rateFindings(sent, rate, slackUs));
    for (const { count, perUs } of windows) found.push(...windowFindings(sent, count, perUs - slackUs));
    if (concurrency !== undefined) found.push(...placeFindings(all, concurrency, { heldUs, slackUs }));
    for (const { fromUs, untilUs } of holds) found.push(...holdFindings(sent, fromUs, untilUs - slackUs));
    return found.map((finding) => ({ key, ...finding }));
  });
}

/** Finds every start whose token is not greater than those of all earlier starts of its key: one grant counted twice, for instance. */
export function checkTokens(starts: readonly LoggedStart[]): Violation[] {
  return [...byKey(starts)].flatMap(([key, all]) => {
    const sorted = all.toSorted((a, b) => a.startedUs - b.startedUs || tokenOf(a) - tokenOf(b));
    const tokens = Float64Array.from(sorted, tokenOf);
    return sorted.flatMap(({ startedUs }, index) => {
      let extra = 0;
      for (let earlier = 0; earlier < index; earlier++) if (tokens[earlier] >= tokens[index]) extra += 1;
      const says = `token ${tokens[index]}, but ${extra} earlier starts have one as great`;
      return extra > 0 ? [{ kind: "token" as const, key, startedUs, extra, says }] : [];
    });
  });
}

type Finding = Omit<Violation, "key">;

function gapFindings(starts: readonly LoggedStart[], gapUs: number): Finding[] {
  return starts.flatMap(({ startedUs }, index) => {
    let extra = 0;
    for (let earlier = index - 1; earlier >= 0 && startedUs - starts[earlier].startedUs < gapUs; earlier--) extra += 1;
    const lastUs = starts[index - 1]?.startedUs ?? 0;
    const says = `${startedUs - lastUs} µs after the start at ${lastUs}, gap ${gapUs}`;
    return extra > 0 ? [{ kind: "gap" as const, startedUs, extra, says }] : [];
  });
}

function rateFindings(
  starts: readonly LoggedStart[],
  { count, perUs, burst }: NonNullable<StartRule["rate"]>,
  slackUs: number,
): Finding[] {
  const instants = Float64Array.from(starts, ({ startedUs }) => startedUs);
  const units = Float64Array.from(starts, unitsOf);
  const allUnits = units.reduce((sum, each) => sum + each, 0);
  // Beyond 2^53 numbers would be rounded, and a violation missed. No product below is greater than these.
  for (const product of [(allUnits + burst) * perUs, ((instants.at(-1) ?? 0) - (instants[0] ?? 0) + slackUs) * count]) {
    if (!Number.isSafeInteger(product)) throw new RangeError(`Too large to check exactly: ${product}`);
  }
  return starts.flatMap(({ startedUs }, last) => {
    let spent = 0;
    let worstExcess = 0;
    let worst = { spent: 0, spanUs: 0 };
    for (let first = last; first >= 0; first--) {
      spent += units[first];
      const spanUs = startedUs - instants[first];
      const excess = (spent - burst) * perUs - (spanUs + slackUs) * count;
      if (excess <= worstExcess) continue;
      worstExcess = excess;
      worst = { spent, spanUs };
    }
    const says = `${worst.spent} units in the ${worst.spanUs} µs up to here, burst ${burst} at ${count} per ${perUs} µs`;
    const extra = Math.ceil(worstExcess / perUs);
    return worstExcess > 0 ? [{ kind: "rate" as const, startedUs, extra, says }] : [];
  });
}

function windowFindings(starts: readonly LoggedStart[], count: number, perUs: number): Finding[] {
  return starts.flatMap(({ startedUs }, last) => {
    let units = 0;
    for (let first = last; first >= 0 && starts[first].startedUs > startedUs - perUs; first--)
      units += unitsOf(starts[first]);
    const says = `${units} units in the ${perUs} µs up to here, ${count} allowed`;
    return units > count ? [{ kind: "window" as const, startedUs, extra: units - count, says }] : [];
  });
}

function placeFindings(
  starts: readonly LoggedStart[],
  places: number,
  { heldUs = Number.POSITIVE_INFINITY, slackUs }: { readonly heldUs: number | undefined; readonly slackUs: number },
): Finding[] {
  const freeUs = Float64Array.from(starts, (start) => (start.releasedUs ?? start.startedUs + heldUs) - slackUs);
  return starts.flatMap(({ startedUs }, index) => {
    let holding = 0;
    for (let earlier = 0; earlier < index; earlier++) if (freeUs[earlier] > startedUs) holding += 1;
    const says = `started while ${holding} held a place, ${places} allowed`;
    return holding >= places ? [{ kind: "concurrency" as const, startedUs, extra: holding + 1 - places, says }] : [];
  });
}

function holdFindings(starts: readonly LoggedStart[], fromUs: number, untilUs: number): Finding[] {
  return starts
    .filter(({ startedUs }) => startedUs > fromUs && startedUs < untilUs)
    .map(({ startedUs }) => {
      return { kind: "hold" as const, startedUs, extra: 1, says: `inside the hold from ${fromUs} to ${untilUs}` };
    });
}

/** The starts of each key by time; those of one instant keep their order. */
function byKey(starts: readonly LoggedStart[]): Map<string, LoggedStart[]> {
  const keys = new Map<string, LoggedStart[]>();
  for (const start of starts) {
    const { key, startedUs, units = 1, releasedUs = startedUs } = start;
    if (![startedUs, units, releasedUs].every(Number.isSafeInteger)) {
      throw new TypeError(`A start of "${key}" needs whole numbers; got ${JSON.stringify(start)}`);
    }
    const all = keys.get(key) ?? [];
    keys.set(key, all);
    all.push(start);
    if (all.length > maxStarts)
      throw new RangeError(`More than ${maxStarts} starts of "${key}" take too long to check.`);
  }
  for (const all of keys.values()) all.sort((a, b) => a.startedUs - b.startedUs);
  return keys;
}

function checkNumbers({
  gapUs = 0,
  slackUs = 0,
  concurrency = 1,
  heldUs = 0,
  rate,
  windows = [],
  holds = [],
}: StartRule): void {
  const rates = [...windows, ...(rate === undefined ? [] : [{ count: rate.count, perUs: rate.perUs }])];
  const atLeastOne = [concurrency, rate?.burst ?? 1, ...rates.flatMap(({ count, perUs }) => [count, perUs])];
  const atLeastZero = [
    gapUs,
    slackUs,
    heldUs,
    ...atLeastOne,
    ...holds.flatMap(({ fromUs, untilUs }) => [fromUs, untilUs]),
  ];
  if (!atLeastZero.every((value) => Number.isSafeInteger(value) && value >= 0) || atLeastOne.includes(0)) {
    throw new TypeError("A rule has whole numbers from 0; counts, periods, burst and concurrency are at least 1.");
  }
}

function unitsOf({ units = 1 }: LoggedStart): number {
  return units;
}

function tokenOf({ key, startedUs, token }: LoggedStart): number {
  if (token === undefined || !Number.isSafeInteger(token)) {
    throw new TypeError(`The start of "${key}" at ${startedUs} has no token that is a whole number; got ${token}`);
  }
  return token;
}
