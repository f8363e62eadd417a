import { checkNames } from "./core/checkNames.js";
import type { Lease, LeaseRefusal } from "./lease.js";
import { CONTENT_TYPE, countsWith, type HostCounts, readLabels, scrapeText } from "./observe/prometheus.js";
import { type MeasuredLimiter, type MeasureOptions, Watch } from "./observe/watch.js";

export type { MeasuredLimiter, MeasureOptions, Soon, TokensOf } from "./observe/watch.js";

/** How a limiter is shown to Prometheus. `maxHosts` is 200 by default. */
export interface PrometheusOptions extends MeasureOptions {
  /** Labels of every series, `{ limiter: "api" }` say. Default none. Not `host`, `code`, `result` or `le`. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Upper bounds of the waits, in seconds, rising. Default 0.01 to 300. The alarm of waits needs 5 among them. */
  readonly waitBuckets?: readonly number[] | undefined;
  /** Upper bounds of the intervals between starts, in seconds, rising. Default 0.01 to 60. The alarms of a limit of 2 s need 1.5 and 3 among them. */
  readonly intervalBuckets?: readonly number[] | undefined;
}

/** What a limiter has to say to Prometheus. */
export interface PrometheusMetrics {
  /** The metrics in the text format, version 0.0.4. Counters begin at zero when this was made, and never fall. Asks the limiter for its statistics. */
  text(): Promise<string>;
  /** The `Content-Type` to send the text with. */
  readonly contentType: string;
  /**
   * Counts how asking for a lease ends: `countLease(exclusive(store, name, options))`. Answers as it does. A lease counts as held until its release or loss.
   * A wait that was aborted counts as nothing.
   */
  countLease(asked: Promise<Lease | LeaseRefusal>): Promise<Lease | LeaseRefusal>;
  /** Stops counting. The text stays as it is, but for what is read from the statistics. */
  close(): void;
}

const KNOWN_OPTIONS = ["maxHosts", "tokensOf", "labels", "waitBuckets", "intervalBuckets"];
const MAX_HOSTS = 200;

/**
 * Counts what a limiter does, for Prometheus to scrape.
 *
 * `maxHosts` hosts have series of their own, the most active; the others share `host="other"`. When a host moves there its counts do too, so that sums stay
 * right. A host has about 60 series. Throws `TypeError` or `RangeError` for options that make no sense.
 */
export function prometheusMetrics(limiter: MeasuredLimiter, options: PrometheusOptions = {}): PrometheusMetrics {
  checkNames(options, KNOWN_OPTIONS, "options");
  const { waitBuckets: wait, intervalBuckets: interval, labels: given, ...measure } = options;
  const labels = readLabels(given);
  // What moves to the others takes its counts along.
  const maker = { make: countsWith({ wait, interval }), absorb: (to: HostCounts, from: HostCounts) => to.absorb(from) };
  const watch = new Watch(limiter, { ...measure, maker, defaultMaxHosts: MAX_HOSTS });
  return {
    contentType: CONTENT_TYPE,
    text: () => scrapeText(watch, labels),
    countLease: (asked) => watch.leases.count(asked),
    close: () => watch.close(),
  };
}
