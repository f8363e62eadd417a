import { checkNames } from "./core/checkNames.js";
import type { Lease, LeaseRefusal } from "./lease.js";
import { type MeterLike, type ObservableLike, watchWith } from "./observe/opentelemetry.js";
import type { MeasuredLimiter, MeasureOptions } from "./observe/watch.js";

export type {
  Attributes,
  BatchResultLike,
  CounterLike,
  HistogramLike,
  InstrumentOptions,
  MeterLike,
  ObservableLike,
} from "./observe/opentelemetry.js";
export type { MeasuredLimiter, MeasureOptions, Soon, TokensOf } from "./observe/watch.js";

/** How a limiter is shown to OpenTelemetry. `maxHosts` is 200 by default. */
export interface InstrumentLimiterOptions<Observable extends ObservableLike> extends MeasureOptions {
  /** What makes the instruments: `metrics.getMeter("politely")` of `@opentelemetry/api`. One for each limiter: of two on one meter, only the last one's gauges are told. */
  readonly meter: MeterLike<Observable>;
}

/** What `instrument` keeps running. */
export interface Instrumentation {
  /** Counts how asking for a lease ends; as `PrometheusMetrics.countLease`. */
  countLease(asked: Promise<Lease | LeaseRefusal>): Promise<Lease | LeaseRefusal>;
  /** Stops measuring. What was measured stays with the meter. */
  close(): void;
}

/**
 * Measures what a limiter does with instruments of `meter`: counters and histograms as it happens, the rest when somebody collects.
 *
 * `maxHosts` hosts have an attribute of their own, the most active; the others share `"other"`. A host that moves there keeps what was counted
 * under its name, so that sums stay right; over the whole life of a meter there are at most eleven names for each of `maxHosts`.
 */
export function instrument<Observable extends ObservableLike>(
  limiter: MeasuredLimiter,
  options: InstrumentLimiterOptions<Observable>,
): Instrumentation {
  checkNames(options, ["meter", "maxHosts", "tokensOf"], "options");
  const { meter, ...measure } = options;
  if (typeof meter?.createCounter !== "function") {
    throw new TypeError('meter must be a Meter of @opentelemetry/api, as metrics.getMeter("politely") is.');
  }
  const watch = watchWith(limiter, meter, measure);
  return { countLease: (asked) => watch.leases.count(asked), close: () => watch.close() };
}
