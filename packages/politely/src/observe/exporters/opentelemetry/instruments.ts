import { IN_FLIGHT_BOUNDS, INTERVAL_BOUNDS, WAIT_BOUNDS } from "../histogram.js";
import { COUNTERS, GAUGES, HISTOGRAMS, type Metric, WHOLE } from "../metrics.js";
import { type Series, type SeriesMaker, UNKNOWN } from "../series.js";
import type { Attributes, CounterLike, HistogramLike, InstrumentOptions, MeterLike, ObservableLike } from "./meter.js";

/** The attribute that names the host, as the semantic conventions do for the server a client calls. */
export const HOST_ATTRIBUTE = "server.address";
/** The attribute with the code of a refusal, as the semantic conventions name the kind of an error. */
export const CODE_ATTRIBUTE = "error.type";
/** The attribute that says how asking for a lease ended. */
export const RESULT_ATTRIBUTE = "politely.lease.result";

/** Every instrument of a limiter. */
export interface Instruments<Observable extends ObservableLike> {
  readonly counters: Readonly<Record<keyof typeof COUNTERS, CounterLike>>;
  readonly histograms: Readonly<Record<keyof typeof HISTOGRAMS, HistogramLike>>;
  readonly gauges: Readonly<Record<keyof typeof GAUGES | "hosts" | "storeAway" | "leasesHeld", Observable>>;
  readonly outages: CounterLike;
  readonly leases: CounterLike;
}

/** Makes the instruments. Made twice by one meter they are the same. */
export function createInstruments<Observable extends ObservableLike>(
  meter: MeterLike<Observable>,
): Instruments<Observable> {
  const counter = (metric: Metric): CounterLike => meter.createCounter(metric.opentelemetry, described(metric));
  const histogram = (metric: Metric, bounds: readonly number[]): HistogramLike =>
    meter.createHistogram(metric.opentelemetry, {
      ...described(metric),
      advice: { explicitBucketBoundaries: [...bounds] },
    });
  // What is added up over hosts and processes is an up-down counter; what is not, a gauge.
  const sum = (metric: Metric): Observable =>
    meter.createObservableUpDownCounter(metric.opentelemetry, described(metric));
  const gauge = (metric: Metric): Observable => meter.createObservableGauge(metric.opentelemetry, described(metric));
  return {
    counters: {
      starts: counter(COUNTERS.starts),
      unused: counter(COUNTERS.unused),
      refused: counter(COUNTERS.refused),
      cancelled: counter(COUNTERS.cancelled),
      expired: counter(COUNTERS.expired),
      throttled: counter(COUNTERS.throttled),
      cooldowns: counter(COUNTERS.cooldowns),
      lapsed: counter(COUNTERS.lapsed),
    },
    histograms: {
      wait: histogram(HISTOGRAMS.wait, WAIT_BOUNDS),
      interval: histogram(HISTOGRAMS.interval, INTERVAL_BOUNDS),
      inFlight: histogram(HISTOGRAMS.inFlight, IN_FLIGHT_BOUNDS),
    },
    gauges: {
      inFlight: sum(GAUGES.inFlight),
      waiting: sum(GAUGES.waiting),
      cooldown: gauge(GAUGES.cooldown),
      tokens: gauge(GAUGES.tokens),
      hosts: sum(WHOLE.hosts),
      storeAway: gauge(WHOLE.storeAway),
      leasesHeld: sum(WHOLE.leasesHeld),
    },
    outages: counter(WHOLE.outages),
    leases: counter(WHOLE.leases),
  };
}

function described({ help, unit }: Metric): InstrumentOptions {
  return { description: help, unit };
}

/** Hands the numbers of one host on as they come. */
export class HostInstruments implements Series {
  readonly #attributes: Attributes;
  readonly #counters: Instruments<ObservableLike>["counters"];
  readonly #histograms: Instruments<ObservableLike>["histograms"];

  constructor(label: string, { counters, histograms }: Pick<Instruments<ObservableLike>, "counters" | "histograms">) {
    this.#attributes = { [HOST_ATTRIBUTE]: label };
    this.#counters = counters;
    this.#histograms = histograms;
  }

  started(waitedMs: number, intervalMs: number, inFlight: number): void {
    const attributes = this.#attributes;
    this.#counters.starts.add(1, attributes);
    if (waitedMs !== UNKNOWN) this.#histograms.wait.record(waitedMs / 1_000, attributes);
    if (intervalMs !== UNKNOWN) this.#histograms.interval.record(intervalMs / 1_000, attributes);
    if (inFlight !== UNKNOWN) this.#histograms.inFlight.record(inFlight, attributes);
  }

  unused(): void {
    this.#counters.unused.add(1, this.#attributes);
  }

  refused(code: string): void {
    this.#counters.refused.add(1, { ...this.#attributes, [CODE_ATTRIBUTE]: code });
  }

  cancelled(): void {
    this.#counters.cancelled.add(1, this.#attributes);
  }

  expired(): void {
    this.#counters.expired.add(1, this.#attributes);
  }

  cooledDown(): void {
    this.#counters.cooldowns.add(1, this.#attributes);
  }

  throttled(times: number): void {
    this.#counters.throttled.add(times, this.#attributes);
  }

  lapsed(times: number): void {
    this.#counters.lapsed.add(times, this.#attributes);
  }
}

/** Makes series that write to these instruments. What a host has counted stays under its name; only what follows goes to the others. */
export function hostInstrumentsMaker(
  instruments: Pick<Instruments<ObservableLike>, "counters" | "histograms">,
): SeriesMaker<HostInstruments> {
  return { make: (label) => new HostInstruments(label, instruments), absorb: () => undefined };
}
