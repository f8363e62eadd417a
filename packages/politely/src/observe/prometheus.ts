import {
  BOUNDS,
  COUNTERS,
  Counts,
  GAUGES,
  type GaugeName,
  HISTOGRAMS,
  type HistogramName,
  type Metric,
  WHOLE,
} from "./metrics.js";
import { type Look, nextTurn, type Watch } from "./watch.js";

/** The media type of the text. */
export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Labels as they are written, without braces; empty for none. Written once for all series of a host, since there are many. */
type Labels = string;
type Value = readonly [Labels, number];

/** Codes that are told from the beginning, so that the first refusal is seen as a growth. */
const USUAL_CODES = ["POLITELY_DEADLINE", "POLITELY_QUEUE_FULL", "POLITELY_CAPACITY", "POLITELY_BUSY"];
/** So many hosts are written in one go, within some milliseconds. */
const FEW_HOSTS = 50;
const BOUNDS_MOST = 50;
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/;
/** Names that series have already. */
const LABELS_TAKEN = ["host", "code", "result", "le"];

/** Counts numbers by size. Bounds are upper ones, included; what is larger than the last is counted too. */
export class Histogram {
  /** Not cumulative; the last place is for what is beyond all bounds. */
  readonly counts: number[];
  sum = 0;
  count = 0;

  constructor(readonly bounds: readonly number[]) {
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  add(value: number): void {
    let index = 0;
    while (index < this.bounds.length && value > this.bounds[index]) index += 1;
    this.counts[index] += 1;
    this.sum += value;
    this.count += 1;
  }

  /** Adds what another with the same bounds has counted. */
  absorb(other: Histogram): void {
    for (const [index, count] of other.counts.entries()) this.counts[index] += count;
    this.sum += other.sum;
    this.count += other.count;
  }
}

/** Everything that was counted of one host, from the beginning. */
export type HostCounts = Counts<Histogram>;

/** Makes what counts one host, with other bounds where they are given. Throws `RangeError` unless they are positive, finite and rising. */
export function countsWith(
  given: Readonly<Partial<Record<HistogramName, readonly number[] | undefined>>>,
): () => HostCounts {
  const boundsOf = (name: HistogramName): readonly number[] => given[name] ?? BOUNDS[name];
  for (const name of ["wait", "interval"] as const) {
    const bounds = boundsOf(name);
    const isRising = bounds.every((bound, index) => Number.isFinite(bound) && bound > (bounds[index - 1] ?? 0));
    if (bounds.length > 0 && bounds.length <= BOUNDS_MOST && isRising) continue;
    throw new RangeError(
      `${name}Buckets must be 1 to ${BOUNDS_MOST} rising numbers of seconds above 0; got [${bounds.join(", ")}].`,
    );
  }
  return () => new Counts((name) => new Histogram([...boundsOf(name)]));
}

/** Labels for every series; throws `RangeError` for a name that cannot be one. */
export function readLabels(value: Readonly<Record<string, string>> = {}): Labels {
  const written = Object.entries(value).map(([name, text]) => {
    if (!LABEL_NAME.test(name) || LABELS_TAKEN.includes(name)) {
      throw new RangeError(
        `labels: "${name}" cannot be a label. Letters, digits and _ can; ${LABELS_TAKEN.join(", ")} are taken.`,
      );
    }
    if (typeof text !== "string") throw new TypeError(`labels.${name} must be a text; got ${String(text)}.`);
    return [name, text] as const;
  });
  return written.reduce((labels, [name, text]) => labelled(labels, name, text), "");
}

/** Writes a scrape in the text format, version 0.0.4, a metric of all hosts at a time. */
export async function scrapeText(watch: Watch<HostCounts>, common: Labels): Promise<string> {
  const look = await watch.look();
  const isLarge = watch.table.labelled.size > FEW_HOSTS;
  let text = "";
  for (const part of scrapeParts(watch, look, common)) {
    text += part;
    if (isLarge) await nextTurn();
  }
  return text;
}

function* scrapeParts(watch: Watch<HostCounts>, look: Look, common: Labels): Generator<string, void, undefined> {
  const { table, outages, isStoreAway, leases } = watch;
  const hosts = table.all().map(([label, series]) => [labelled(common, "host", label), series] as const);
  for (const [name, metric] of entries(COUNTERS)) {
    const values = hosts.flatMap(([labels, { counters, refusedBy }]): readonly Value[] => {
      if (name !== "refused") return [[labels, counters[name]]];
      const codes = [...new Set([...USUAL_CODES, ...refusedBy.keys()])];
      return codes.map((code) => [labelled(labels, "code", code), refusedBy.get(code) ?? 0]);
    });
    yield written(metric, "counter", values);
  }
  for (const [name, metric] of entries(HISTOGRAMS)) {
    yield head(metric, "histogram") +
      hosts.map(([labels, { samples }]) => buckets(metric, labels, samples[name])).join("");
  }
  const gauges = [...look.gauges].map(([label, gauge]) => [labelled(common, "host", label), gauge] as const);
  const gaugeValues = (name: GaugeName): readonly Value[] =>
    gauges.flatMap(([labels, { [name]: value }]) => (value === undefined ? [] : [[labels, value]]));
  for (const [name, metric] of entries(GAUGES)) yield written(metric, "gauge", gaugeValues(name));
  const results = Object.entries(leases.results).map(
    ([result, count]): Value => [labelled(common, "result", result), count],
  );
  yield written(WHOLE.hosts, "gauge", [[common, look.hostCount]]);
  yield written(WHOLE.outages, "counter", [[common, outages]]);
  yield written(WHOLE.storeAway, "gauge", [[common, isStoreAway ? 1 : 0]]);
  yield written(WHOLE.leases, "counter", results);
  yield written(WHOLE.leasesHeld, "gauge", [[common, leases.held]]);
}

function entries<Name extends string>(group: Readonly<Record<Name, Metric>>): readonly [Name, Metric][] {
  return Object.entries(group) as [Name, Metric][];
}

/** A metric without series is left out. */
function written(metric: Metric, type: "counter" | "gauge", values: readonly Value[]): string {
  if (values.length === 0) return "";
  return head(metric, type) + values.map(([labels, value]) => sample(metric.prometheus, labels, value)).join("");
}

function head({ prometheus: name, help }: Metric, type: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

function buckets({ prometheus: name }: Metric, labels: Labels, { bounds, counts, sum, count }: Histogram): string {
  let below = 0;
  const lines = bounds.map((bound, index) => {
    below += counts[index];
    return sample(`${name}_bucket`, labelled(labels, "le", String(bound)), below);
  });
  lines.push(sample(`${name}_bucket`, labelled(labels, "le", "+Inf"), count));
  return lines.join("") + sample(`${name}_sum`, labels, sum) + sample(`${name}_count`, labels, count);
}

function sample(name: string, labels: Labels, value: number): string {
  return labels === "" ? `${name} ${value}\n` : `${name}{${labels}} ${value}\n`;
}

/** Labels with one more behind. */
function labelled(labels: Labels, name: string, value: string): Labels {
  const escaped = value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
  return `${labels}${labels === "" ? "" : ","}${name}="${escaped}"`;
}
