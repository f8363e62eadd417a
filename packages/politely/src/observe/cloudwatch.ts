import { OTHER } from "./hostTable.js";
import { COUNTERS, Counts, GAUGES, type Gauges, HISTOGRAMS, type Metric, ofEach, WHOLE } from "./metrics.js";
import { type MeasuredLimiter, type MeasureOptions, noGauges, Watch } from "./watch.js";

/** What all lines of an exporter have in common. */
export interface Frame {
  readonly namespace: string;
  readonly dimensions: Readonly<Record<string, string>>;
}

/** A metric, and its value or values. An empty list is left out. */
type Measurement = readonly [metric: Pick<Metric, "cloudwatch" | "unit">, value: number | readonly number[]];

const MAX_HOSTS = 10;
/** How many values one metric may have in a line. */
const VALUES_MOST = 100;
/** CloudWatch takes 30; one is the host. */
const DIMENSIONS_MOST = 29;
const LEASES_TAKEN = { cloudwatch: "LeasesTaken", unit: "{lease}" };
const LEASE_FAILURES = { cloudwatch: "LeaseFailures", unit: "{lease}" };

/** Names that a dimension must not have, since a line has them already. */
const NAMES_TAKEN: readonly string[] = [
  ..."_aws Host LeasesTaken LeaseFailures RefusedByCode LeasesByResult".split(" "),
  ...[COUNTERS, HISTOGRAMS, GAUGES, WHOLE]
    .flatMap((group): Metric[] => Object.values(group))
    .map((metric) => metric.cloudwatch),
];

/**
 * Keeps numbers for a line: all of them up to 98; of more, every second, fourth and so on. The smallest and the largest are always among them.
 */
class Values {
  #kept: number[] = [];
  #stride = 1;
  #count = 0;
  #least = Number.POSITIVE_INFINITY;
  #most = Number.NEGATIVE_INFINITY;

  add(value: number): void {
    if (this.#count % this.#stride === 0) this.#kept.push(value);
    this.#count += 1;
    this.#least = Math.min(this.#least, value);
    this.#most = Math.max(this.#most, value);
    if (this.#kept.length <= VALUES_MOST - 2) return;
    this.#kept = this.#kept.filter((_, index) => index % 2 === 0);
    this.#stride *= 2;
  }

  absorb(other: Values): void {
    for (const value of other.list()) this.add(value);
  }

  /** The values, 100 at most. */
  list(): readonly number[] {
    if (this.#count === 0) return [];
    const ends = new Set([this.#least, this.#most]);
    return [...this.#kept, ...[...ends].filter((end) => !this.#kept.includes(end))];
  }
}

type HostWindow = Counts<Values>;

/** Follows a limiter, and makes lines of what happened since the last ones were made. */
export class EmfWatch {
  readonly watch: Watch<HostWindow>;
  readonly #frame: Frame;
  #told = { outages: 0, taken: 0, refused: 0, failed: 0, lost: 0 };

  constructor(limiter: MeasuredLimiter, frame: Frame, options: MeasureOptions) {
    this.#frame = frame;
    // Who loses its label leaves what it has counted since the last flush to the others.
    const make = (): HostWindow => new Counts(() => new Values());
    const maker = { make, absorb: (to: HostWindow, from: HostWindow) => to.absorb(from) };
    this.watch = new Watch(limiter, { ...options, maker, defaultMaxHosts: MAX_HOSTS });
  }

  /** A line for each host of which there is something to tell, and one for leases and outages. */
  async lines(wall: () => number): Promise<readonly string[]> {
    const { gauges } = await this.watch.look();
    const timestampMs = Math.floor(wall());
    const lines = this.watch.table.takeAll().flatMap(([label, counts]) => {
      const gauge = gauges.get(label) ?? noGauges();
      const numbers = [...Object.values(counts.counters), gauge.inFlight, gauge.waiting, gauge.cooldown];
      return numbers.every((count) => count === 0) ? [] : [hostLine(this.#frame, label, counts, gauge, timestampMs)];
    });
    return [...lines, ...this.#wholeLine(timestampMs)];
  }

  #wholeLine(timestampMs: number): readonly string[] {
    const { outages, leases } = this.watch;
    const now = { outages, ...leases.results };
    const names = Object.keys(now) as (keyof typeof now)[];
    const grown = names.map((name) => [name, now[name] - this.#told[name]] as const).filter(([, count]) => count > 0);
    this.#told = now;
    if (grown.length === 0 && leases.held === 0) return [];
    const { outages: outagesNow = 0, ...results } = Object.fromEntries(grown) as Partial<typeof now>;
    const { taken = 0, refused = 0, failed = 0, lost = 0 } = results;
    const measured = told(
      this.#frame,
      [Object.keys(this.#frame.dimensions)],
      [
        [WHOLE.outages, outagesNow],
        [LEASES_TAKEN, taken],
        [LEASE_FAILURES, refused + failed + lost],
        [WHOLE.leasesHeld, leases.held],
      ],
    );
    return [line(this.#frame, timestampMs, [measured], { LeasesByResult: results })];
  }
}

/** Reads namespace and dimensions; throws `TypeError` or `RangeError` for what CloudWatch would drop without a word. */
export function readFrame(namespace: string, dimensions: Readonly<Record<string, string>> = {}): Frame {
  if (typeof namespace !== "string") throw new TypeError(`namespace must be a text; got ${String(namespace)}.`);
  if (!isPrintable(namespace, 255) || /^(:|AWS\/)/.test(namespace)) {
    throw new RangeError(
      `namespace must have 1 to 255 printable characters and begin neither with ":" nor with "AWS/"; got ${JSON.stringify(namespace.slice(0, 60))}.`,
    );
  }
  const entries = Object.entries(dimensions);
  if (entries.length > DIMENSIONS_MOST) {
    throw new RangeError(
      `dimensions may have ${DIMENSIONS_MOST} entries at most, beside the host; got ${entries.length}.`,
    );
  }
  for (const [name, value] of entries) {
    if (!isPrintable(name, 250) || name.startsWith(":") || NAMES_TAKEN.includes(name)) {
      throw new RangeError(
        `dimensions: ${JSON.stringify(name.slice(0, 60))} cannot be a name. It needs 1 to 250 printable characters, no ":" in front, and must not be a metric's.`,
      );
    }
    if (typeof value !== "string") throw new TypeError(`dimensions.${name} must be a text; got ${String(value)}.`);
    if (!isPrintable(value, 1_024))
      throw new RangeError(`dimensions.${name} must have 1 to 1024 printable characters.`);
  }
  return { namespace, dimensions: { ...dimensions } };
}

/** The line of one host: what was counted, by host and over all of them, and what is true of it now. */
function hostLine(frame: Frame, label: string, taken: HostWindow, gauges: Gauges, timestampMs: number): string {
  const counters = ofEach(COUNTERS, (metric, name): Measurement => [metric, taken.counters[name]]);
  const histograms = ofEach(HISTOGRAMS, (metric, name): Measurement => [metric, taken.samples[name].list()]);
  const present = ofEach(GAUGES, (metric, name): Measurement => [metric, gauges[name] ?? []]);
  const own = Object.keys(frame.dimensions);
  const withHost = [...own, "Host"];
  const parts = [
    // Counts of several hosts can be added up, so they are told without the host too; what is true now cannot.
    told(frame, [own, withHost], [...Object.values(counters), ...Object.values(histograms)]),
    told(frame, [withHost], Object.values(present)),
  ];
  const refusals = taken.counters.refused === 0 ? {} : { RefusedByCode: Object.fromEntries(taken.refusedBy) };
  return line(frame, timestampMs, parts, { Host: isPrintable(label, 1_024) ? label : OTHER, ...refusals });
}

/** What a line says of its dimensions, and the values. */
interface Part {
  readonly directive: object;
  readonly members: object;
}

function told({ namespace }: Frame, dimensions: readonly (readonly string[])[], all: readonly Measurement[]): Part {
  const measured = all.filter(([, value]) => typeof value === "number" || value.length > 0);
  const metrics = measured.map(([{ cloudwatch, unit }]) => ({
    Name: cloudwatch,
    Unit: unit === "s" ? "Seconds" : "Count",
  }));
  return {
    directive: { Namespace: namespace, Dimensions: dimensions, Metrics: metrics },
    members: Object.fromEntries(measured.map(([{ cloudwatch }, value]) => [cloudwatch, value])),
  };
}

function line({ dimensions }: Frame, timestampMs: number, parts: readonly Part[], rest: object): string {
  const _aws = { Timestamp: timestampMs, CloudWatchMetrics: parts.map(({ directive }) => directive) };
  return JSON.stringify({ _aws, ...dimensions, ...rest, ...Object.assign({}, ...parts.map(({ members }) => members)) });
}

/** CloudWatch takes printable ASCII, and not only spaces. */
function isPrintable(text: string, most: number): boolean {
  return /^[\x20-\x7e]+$/.test(text) && text.trim() !== "" && text.length <= most;
}
