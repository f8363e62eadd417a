import { checkNames } from "./core/checkNames.js";
import type { Lease, LeaseRefusal } from "./lease.js";
import { Leases } from "./observe/exporters/leases.js";
import type { MeasuredLimiter, MeasureOptions } from "./observe/exporters/measured.js";
import {
  createInstruments,
  HOST_ATTRIBUTE,
  hostInstrumentsMaker,
  RESULT_ATTRIBUTE,
} from "./observe/exporters/opentelemetry/instruments.js";
import type { BatchResultLike, MeterLike, ObservableLike } from "./observe/exporters/opentelemetry/meter.js";
import { checkLimiter, readMaxHosts, readTokensOf } from "./observe/exporters/readOptions.js";
import { Watch } from "./observe/exporters/watch.js";

export type { MeasuredLimiter, MeasureOptions, Soon, TokensOf } from "./observe/exporters/measured.js";
export type {
  Attributes,
  BatchResultLike,
  CounterLike,
  HistogramLike,
  InstrumentOptions,
  MeterLike,
  ObservableLike,
} from "./observe/exporters/opentelemetry/meter.js";

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

const KNOWN_OPTIONS = ["meter", "maxHosts", "tokensOf"];
const MAX_HOSTS = 200;

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
  checkLimiter(limiter);
  checkNames(options, KNOWN_OPTIONS, "options");
  const { meter } = options;
  if (typeof meter?.createCounter !== "function") {
    throw new TypeError('meter must be a Meter of @opentelemetry/api, as metrics.getMeter("politely") is.');
  }
  const instruments = createInstruments(meter);
  const maxHosts = readMaxHosts(options.maxHosts, MAX_HOSTS);
  const watch = new Watch(limiter, hostInstrumentsMaker(instruments), {
    maxHosts,
    tokensOf: readTokensOf(options.tokensOf),
  });
  const leases = new Leases((result) => instruments.leases.add(1, { [RESULT_ATTRIBUTE]: result }));
  const { gauges } = instruments;
  let outages = 0;

  const observe = async (result: BatchResultLike<Observable>): Promise<void> => {
    const look = await watch.look();
    for (const [label, gauge] of look.gauges) {
      const attributes = { [HOST_ATTRIBUTE]: label };
      result.observe(gauges.inFlight, gauge.inFlight, attributes);
      result.observe(gauges.waiting, gauge.waiting, attributes);
      result.observe(gauges.cooldown, gauge.cooldownMs / 1_000, attributes);
      if (gauge.tokens !== undefined) result.observe(gauges.tokens, gauge.tokens, attributes);
    }
    result.observe(gauges.hosts, look.hostCount);
    result.observe(gauges.storeAway, watch.isStoreAway ? 1 : 0);
    result.observe(gauges.leasesHeld, leases.held);
    if (watch.outages > outages) instruments.outages.add(watch.outages - outages);
    outages = watch.outages;
  };
  const observables = Object.values(gauges);
  meter.addBatchObservableCallback(observe, observables);

  return {
    countLease: (asked) => leases.count(asked),
    close() {
      watch.close();
      meter.removeBatchObservableCallback(observe, observables);
    },
  };
}
