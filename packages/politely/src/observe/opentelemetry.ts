import { BOUNDS, COUNTERS, GAUGES, HISTOGRAMS, type Metric, ofEach, type Series, WHOLE } from "./metrics.js";
import type { MeasuredLimiter, MeasureOptions } from "./watch.js";
import { Watch } from "./watch.js";

/** Attributes of a measurement. */
export type Attributes = Readonly<Record<string, string>>;

/** How an instrument is described. */
export interface InstrumentOptions {
  description?: string;
  unit?: string;
  advice?: { explicitBucketBoundaries?: number[] };
}

/** What only grows. */
export interface CounterLike {
  add(value: number, attributes?: Attributes): void;
}

/** What is counted by size. */
export interface HistogramLike {
  record(value: number, attributes?: Attributes): void;
}

/** An instrument that is read when somebody collects. Only handed back to its meter. */
export type ObservableLike = object;

/** Where a collection is told the numbers. */
export interface BatchResultLike<Observable> {
  observe(instrument: Observable, value: number, attributes?: Attributes): void;
}

/** The part of a `Meter` of `@opentelemetry/api` that is called. */
export interface MeterLike<Observable extends ObservableLike = ObservableLike> {
  createCounter(name: string, options?: InstrumentOptions): CounterLike;
  createHistogram(name: string, options?: InstrumentOptions): HistogramLike;
  createObservableGauge(name: string, options?: InstrumentOptions): Observable;
  createObservableUpDownCounter(name: string, options?: InstrumentOptions): Observable;
  addBatchObservableCallback(
    callback: (result: BatchResultLike<Observable>) => Promise<void>,
    observables: Observable[],
  ): void;
  removeBatchObservableCallback(
    callback: (result: BatchResultLike<Observable>) => Promise<void>,
    observables: Observable[],
  ): void;
}

/** The attribute that names the host, as the semantic conventions do for the server a client calls. */
const HOST_ATTRIBUTE = "server.address";
/** The attribute with the code of a refusal, as the semantic conventions name the kind of an error. */
const CODE_ATTRIBUTE = "error.type";
/** The attribute that says how asking for a lease ended. */
const RESULT_ATTRIBUTE = "politely.lease.result";
const MAX_HOSTS = 200;

/** Measures a limiter by instruments of `meter`. Made twice by one meter, instruments are the same. */
export function watchWith<Observable extends ObservableLike>(
  limiter: MeasuredLimiter,
  meter: MeterLike<Observable>,
  options: MeasureOptions,
): Watch<Series> {
  const counter = (metric: Metric): CounterLike => meter.createCounter(metric.opentelemetry, described(metric));
  // What is added up over hosts and processes is an up-down counter; what is not, a gauge.
  const sum = (metric: Metric): Observable =>
    meter.createObservableUpDownCounter(metric.opentelemetry, described(metric));
  const gauge = (metric: Metric): Observable => meter.createObservableGauge(metric.opentelemetry, described(metric));
  const counters = ofEach(COUNTERS, counter);
  const histograms = ofEach(HISTOGRAMS, (metric, name) =>
    meter.createHistogram(metric.opentelemetry, {
      ...described(metric),
      advice: { explicitBucketBoundaries: [...BOUNDS[name]] },
    }),
  );
  const gauges = ofEach(GAUGES, (metric, name) => (name === "inFlight" || name === "waiting" ? sum : gauge)(metric));
  const [hosts, storeAway, leasesHeld] = [sum(WHOLE.hosts), gauge(WHOLE.storeAway), sum(WHOLE.leasesHeld)];
  const [outages, leases] = [counter(WHOLE.outages), counter(WHOLE.leases)];
  const seriesOf = (label: string): Series => {
    const host = { [HOST_ATTRIBUTE]: label };
    return {
      count: (name, times, code) =>
        counters[name].add(times, code === undefined ? host : { ...host, [CODE_ATTRIBUTE]: code }),
      record: (name, value) => histograms[name].record(value, host),
    };
  };
  const watch = new Watch(limiter, {
    ...options,
    defaultMaxHosts: MAX_HOSTS,
    // What a host has counted stays under its name; only what follows goes to the others.
    maker: { make: seriesOf, absorb: () => undefined },
    onLease: (result) => leases.add(1, { [RESULT_ATTRIBUTE]: result }),
  });
  let outagesTold = 0;
  const observe = async (result: BatchResultLike<Observable>): Promise<void> => {
    const look = await watch.look();
    for (const [label, values] of look.gauges) {
      for (const name of Object.keys(gauges) as (keyof typeof gauges)[]) {
        const value = values[name];
        if (value !== undefined) result.observe(gauges[name], value, { [HOST_ATTRIBUTE]: label });
      }
    }
    result.observe(hosts, look.hostCount);
    result.observe(storeAway, watch.isStoreAway ? 1 : 0);
    result.observe(leasesHeld, watch.leases.held);
    if (watch.outages > outagesTold) outages.add(watch.outages - outagesTold);
    outagesTold = watch.outages;
  };
  const observables = [...Object.values(gauges), hosts, storeAway, leasesHeld];
  meter.addBatchObservableCallback(observe, observables);
  const { close } = watch;
  return Object.assign(watch, {
    close: () => {
      close();
      meter.removeBatchObservableCallback(observe, observables);
    },
  });
}

function described({ help, unit }: Metric): InstrumentOptions {
  return { description: help, unit };
}
