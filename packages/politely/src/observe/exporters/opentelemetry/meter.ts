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
