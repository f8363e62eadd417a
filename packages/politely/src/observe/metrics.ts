/** One metric in the words of each system. */
export interface Metric {
  /** Base units; `_total` at the end of what only grows. */
  readonly prometheus: string;
  readonly opentelemetry: string;
  /** Empty: it is told in another way, or not at all. */
  readonly cloudwatch: string;
  readonly unit: string;
  /** What it counts, in a sentence. */
  readonly help: string;
}

export type Counter = "starts" | "unused" | "refused" | "cancelled" | "expired" | "throttled" | "cooldowns" | "lapsed";
export type HistogramName = "wait" | "interval" | "inFlight";
export type GaugeName = "inFlight" | "waiting" | "cooldown" | "tokens";
export type WholeName = "hosts" | "outages" | "storeAway" | "leases" | "leasesHeld";

/** Counters with a label for the host: our name, Prometheus, OpenTelemetry, CloudWatch, unit, what it says. */
export const COUNTERS = group<Counter>(`
starts | starts_total | starts | Starts | {start} | Starts granted or recorded, those given back unused too.
unused | unused_total | unused | Unused | {start} | Starts given back unused.
refused | refused_total | refused | Refused | {request} | Requests refused at once, by the code of the error.
cancelled | cancelled_total | cancelled | Cancelled | {request} | Waits ended by the caller.
expired | expired_total | expired | Expired | {request} | Waits that reached their deadline.
throttled | throttled_total | throttled | Throttled | {answer} | Answers that said "too many requests".
cooldowns | cooldowns_total | cooldowns | Cooldowns | {cooldown} | Cooldowns begun or lengthened.
lapsed | lapsed_permits_total | lapsed_permits | LapsedPermits | {permit} | Permits that nobody released in time.
`);

/** Histograms with a label for the host. */
export const HISTOGRAMS = group<HistogramName>(`
wait | wait_seconds | wait.duration | WaitTime | s | Time from asking to the start; recorded starts have none.
interval | start_interval_seconds | start.interval | StartInterval | s | Time between two starts of a host in this process.
inFlight | start_concurrency | start.concurrency | StartConcurrency | {request} | Requests of the host in flight at a start, itself included.
`);

/** Upper bounds of histograms. The alarm of waits is at 5 s, those of intervals for a limit of 2 s at 1.5 and 3. */
export const BOUNDS: Readonly<Record<HistogramName, readonly number[]>> = {
  wait: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300],
  interval: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 5, 10, 30, 60],
  inFlight: [1, 2, 3, 5, 10, 20, 50, 100],
};

/** Gauges with a label for the host. */
export const GAUGES = group<GaugeName>(`
inFlight | in_flight | in_flight | InFlight | {request} | Permits not yet released.
waiting | waiting | waiting | Waiting | {request} | Requests waiting for their turn.
cooldown | cooldown_seconds | cooldown.remaining | Cooldown | s | How long the host is still to be left alone.
tokens | tokens_available | tokens.available | TokensAvailable | {token} | Units in the bucket of a host that has a rate.
`);

/** What concerns the whole process. */
export const WHOLE = group<WholeName>(`
hosts | hosts | hosts | | {host} | Hosts whose statistics are kept.
outages | store_outages_total | store.outages | StoreOutages | {outage} | How often the store went away.
storeAway | store_away | store.away | | 1 | 1 while the store is away, else 0.
leases | leases_total | leases | | {lease} | Leases asked for, by how that ended, and leases lost.
leasesHeld | leases_held | leases.held | LeasesHeld | {lease} | Leases held now by this process.
`);

/** What is true of a host now, or of several added up: of cooldowns the longest. Only a host of its own has tokens, if it has a rate. */
export type Gauges = Record<Exclude<GaugeName, "tokens">, number> & { tokens: number | undefined };

/** Makes something of each metric of a group. */
export function ofEach<Name extends string, Made>(
  group: Readonly<Record<Name, Metric>>,
  make: (metric: Metric, name: Name) => Made,
): Record<Name, Made> {
  const names = Object.keys(group) as Name[];
  return Object.fromEntries(names.map((name) => [name, make(group[name], name)])) as Record<Name, Made>;
}

/** Where the numbers of one host go, or of all that share the label `"other"`. Called for every event, so it must be quick and must not throw. */
export interface Series {
  /** `code` says why requests were refused. */
  count(name: Counter, times: number, code?: string): void;
  record(name: HistogramName, value: number): void;
}

/** How series are made, and what becomes of one whose host loses its label. */
export interface SeriesMaker<S extends Series> {
  make(label: string): S;
  /** Moves what `from` has counted to `to`, where that has to be done for sums to stay right. `from` is not used again. */
  absorb(to: S, from: S): void;
}

/** Numbers that were recorded, in one form or another. */
interface Sample<Self> {
  add(value: number): void;
  /** Adds what another holds. */
  absorb(other: Self): void;
}

/** Codes of refusals that are told apart; with more, the rest is `"other"`. */
const CODES_MOST = 20;

/** Everything that was counted of one host. Nothing of it ever falls. */
export class Counts<S extends Sample<S>> implements Series {
  readonly counters: Record<Counter, number> = ofEach(COUNTERS, () => 0);
  readonly refusedBy = new Map<string, number>();
  readonly samples: Record<HistogramName, S>;

  constructor(makeSample: (name: HistogramName) => S) {
    this.samples = ofEach(HISTOGRAMS, (_, name) => makeSample(name));
  }

  count(name: Counter, times: number, code?: string): void {
    this.counters[name] += times;
    if (code === undefined) return;
    const known = this.refusedBy.has(code) || this.refusedBy.size < CODES_MOST - 1 ? code : "other";
    this.refusedBy.set(known, (this.refusedBy.get(known) ?? 0) + times);
  }

  record(name: HistogramName, value: number): void {
    this.samples[name].add(value);
  }

  /** Adds everything that `other` has counted. */
  absorb(other: Counts<S>): void {
    for (const [name, count] of Object.entries(other.counters)) {
      if (name !== "refused") this.count(name as Counter, count);
    }
    for (const [code, count] of other.refusedBy) this.count("refused", count, code);
    for (const [name, sample] of Object.entries(other.samples)) this.samples[name as HistogramName].absorb(sample);
  }
}

function group<Name extends string>(text: string): Readonly<Record<Name, Metric>> {
  const rows = text
    .trim()
    .split("\n")
    .map((row): [string, Metric] => {
      const [name, prometheus, opentelemetry, cloudwatch, unit, help] = row.split("|").map((cell) => cell.trim());
      const names = { prometheus: `politely_${prometheus}`, opentelemetry: `politely.${opentelemetry}`, cloudwatch };
      return [name, { ...names, unit, help }];
    });
  return Object.fromEntries(rows) as Record<Name, Metric>;
}
