import { checkNames } from "./core/checkNames.js";
import type { Lease, LeaseRefusal } from "./lease.js";
import { IN_FLIGHT_BOUNDS, INTERVAL_BOUNDS, WAIT_BOUNDS } from "./observe/exporters/histogram.js";
import { type LeaseResult, Leases } from "./observe/exporters/leases.js";
import type { MeasuredLimiter, MeasureOptions } from "./observe/exporters/measured.js";
import { nextTurn } from "./observe/exporters/nextTurn.js";
import { describeScrape } from "./observe/exporters/prometheus/describe.js";
import { CONTENT_TYPE, labelsOf } from "./observe/exporters/prometheus/exposition.js";
import { hostCountsMaker } from "./observe/exporters/prometheus/hostCounts.js";
import { checkLimiter, readBounds, readLabels, readMaxHosts, readTokensOf } from "./observe/exporters/readOptions.js";
import { Watch } from "./observe/exporters/watch.js";

export type { MeasuredLimiter, MeasureOptions, Soon, TokensOf } from "./observe/exporters/measured.js";

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
/** So many are written in one go, within some milliseconds. */
const FEW_HOSTS = 50;

/**
 * Counts what a limiter does, for Prometheus to scrape.
 *
 * `maxHosts` hosts have series of their own, the most active; the others share `host="other"`. When a host moves there its counts do too, so that sums stay
 * right. A host has about 60 series. Throws `TypeError` or `RangeError` for options that make no sense.
 */
export function prometheusMetrics(limiter: MeasuredLimiter, options: PrometheusOptions = {}): PrometheusMetrics {
  checkLimiter(limiter);
  checkNames(options, KNOWN_OPTIONS, "options");
  const labels = labelsOf(...readLabels(options.labels));
  const maker = hostCountsMaker({
    wait: readBounds(options.waitBuckets, "waitBuckets", WAIT_BOUNDS),
    interval: readBounds(options.intervalBuckets, "intervalBuckets", INTERVAL_BOUNDS),
    inFlight: IN_FLIGHT_BOUNDS,
  });
  const maxHosts = readMaxHosts(options.maxHosts, MAX_HOSTS);
  const watch = new Watch(limiter, maker, { maxHosts, tokensOf: readTokensOf(options.tokensOf) });
  const results = new Map<LeaseResult, number>();
  const leases = new Leases((result) => results.set(result, (results.get(result) ?? 0) + 1));

  return {
    contentType: CONTENT_TYPE,
    async text() {
      const look = await watch.look();
      const { table, outages, isStoreAway } = watch;
      const leasesHeld = leases.held;
      let text = "";
      for (const part of describeScrape({ labels, table, look, outages, isStoreAway, leases: results, leasesHeld })) {
        text += part;
        if (table.labelled.size > FEW_HOSTS) await nextTurn();
      }
      return text;
    },
    countLease: (asked) => leases.count(asked),
    close: () => watch.close(),
  };
}
