import { checkNames } from "./core/checkNames.js";
import { systemClock } from "./engine/systemClock.js";
import type { Lease, LeaseRefusal } from "./lease.js";
import { type Frame, hostLine, wholeLine } from "./observe/exporters/cloudwatch/document.js";
import { type HostWindow, hostWindowMaker } from "./observe/exporters/cloudwatch/hostWindow.js";
import { readFrame } from "./observe/exporters/cloudwatch/readFrame.js";
import { type Gauges, noGauges } from "./observe/exporters/gauges.js";
import { OTHER } from "./observe/exporters/hostTable.js";
import { type LeaseResult, Leases } from "./observe/exporters/leases.js";
import type { MeasuredLimiter, MeasureOptions } from "./observe/exporters/measured.js";
import { checkLimiter, readMaxHosts, readTokensOf } from "./observe/exporters/readOptions.js";
import { Watch } from "./observe/exporters/watch.js";
import { durationUs } from "./policy/duration.js";
import type { Clock } from "./types.js";

export type { MeasuredLimiter, MeasureOptions, Soon, TokensOf } from "./observe/exporters/measured.js";

/** How a limiter is shown to CloudWatch. `maxHosts` is 10 by default: each host costs about 15 custom metrics. */
export interface EmfOptions extends MeasureOptions {
  /** The namespace of the metrics, `"Collector"` say. */
  readonly namespace: string;
  /** Dimensions of every metric, `{ Service: "collector" }` say: 29 at most. Default none. The host is one more. */
  readonly dimensions?: Readonly<Record<string, string>> | undefined;
  /** Takes a line, without a line feed. It must reach CloudWatch Logs as it is: standard output does so in Lambda. */
  readonly write: (line: string) => void;
  /** How often to flush by itself: 1 s to a day. The timer keeps no process alive. Default: only when `flush` is called. */
  readonly everyMs?: number | undefined;
  /** Default: the machine's clock. Tests pass a `VirtualClock`. */
  readonly clock?: Clock | undefined;
}

/** What a limiter has to say to CloudWatch. */
export interface EmfMetrics {
  /**
   * Writes what happened since the last flush: a line for each host of which there is something to tell, and one for leases and outages. Nothing happened: no
   * line. A `write` that throws rejects it once all lines were tried; what that line said is lost.
   */
  flush(): Promise<void>;
  /** Counts how asking for a lease ends; as `PrometheusMetrics.countLease`. */
  countLease(asked: Promise<Lease | LeaseRefusal>): Promise<Lease | LeaseRefusal>;
  /** Flushes a last time and stops counting. */
  close(): Promise<void>;
}

const KNOWN_OPTIONS = ["namespace", "dimensions", "write", "everyMs", "clock", "maxHosts", "tokensOf"];
const MAX_HOSTS = 10;
const LEAST_EVERY_MS = 1_000;
const MOST_EVERY_MS = 86_400_000;
/** Flushes need not be sharp. */
const SLACK_MS = 1_000;

/** Counts what a limiter does, and writes it as log lines from which CloudWatch makes metrics (embedded metric format). Counts are those since the last flush. */
export function emfMetrics(limiter: MeasuredLimiter, options: EmfOptions): EmfMetrics {
  checkLimiter(limiter);
  checkNames(options, KNOWN_OPTIONS, "options");
  const { write, clock = systemClock() } = options;
  if (typeof write !== "function") throw new TypeError(`write must be a function of a line; got ${typeof write}.`);
  const frame = readFrame(options.namespace, options.dimensions);
  const everyMs = readEvery(options.everyMs);
  const maxHosts = readMaxHosts(options.maxHosts, MAX_HOSTS);
  const watch = new Watch(limiter, hostWindowMaker, { maxHosts, tokensOf: readTokensOf(options.tokensOf) });
  return new EmfWriter({ watch, frame, write, clock }, everyMs);
}

interface EmfParts {
  readonly watch: Watch<HostWindow>;
  readonly frame: Frame;
  readonly write: (line: string) => void;
  readonly clock: Clock;
}

class EmfWriter implements EmfMetrics {
  readonly #parts: EmfParts;
  readonly #leases: Leases;
  #results: Partial<Record<LeaseResult, number>> = {};
  #outagesTold = 0;
  #timer: unknown;

  constructor(parts: EmfParts, everyMs: number | undefined) {
    this.#parts = parts;
    this.#leases = new Leases((result) => {
      this.#results[result] = (this.#results[result] ?? 0) + 1;
    });
    if (everyMs !== undefined) this.#flushEvery(everyMs);
  }

  countLease(asked: Promise<Lease | LeaseRefusal>): Promise<Lease | LeaseRefusal> {
    return this.#leases.count(asked);
  }

  async flush(): Promise<void> {
    const { gauges } = await this.#parts.watch.look();
    const lines = this.#lines(gauges);
    const failures: unknown[] = [];
    for (const line of lines) {
      try {
        this.#parts.write(line);
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  close(): Promise<void> {
    this.#parts.clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#parts.watch.close();
    return this.flush();
  }

  #lines(gauges: ReadonlyMap<string, Gauges>): string[] {
    const { watch, frame, clock } = this.#parts;
    const timestampMs = clock.wall();
    const hosts = [{ label: OTHER, series: watch.table.other }, ...watch.table.labelled.values()];
    const lines = hosts.flatMap(({ label, series }) => {
      const taken = series.take();
      const gauge = gauges.get(label) ?? noGauges();
      const isQuiet = taken.isEmpty && gauge.inFlight === 0 && gauge.waiting === 0 && gauge.cooldownMs === 0;
      return isQuiet ? [] : [hostLine(frame, label, taken, gauge, timestampMs)];
    });
    const outages = watch.outages - this.#outagesTold;
    this.#outagesTold = watch.outages;
    const leases = this.#results;
    this.#results = {};
    const { held } = this.#leases;
    if (outages > 0 || held > 0 || Object.keys(leases).length > 0) {
      lines.push(wholeLine(frame, { outages, leases, leasesHeld: held }, timestampMs));
    }
    return lines;
  }

  #flushEvery(everyMs: number): void {
    const { clock } = this.#parts;
    const next = (): void => {
      // Nobody waits for this one; who wants to know what goes wrong calls flush.
      void this.flush().catch(() => undefined);
      this.#flushEvery(everyMs);
    };
    this.#timer = clock.setTimer(clock.now() + everyMs, next, SLACK_MS);
    clock.unref?.(this.#timer);
  }
}

function readEvery(value: number | undefined): number | undefined {
  if (value === undefined) return undefined;
  const everyMs = durationUs(value, "everyMs") / 1_000;
  if (everyMs >= LEAST_EVERY_MS && everyMs <= MOST_EVERY_MS) return everyMs;
  throw new RangeError(`everyMs must be from ${LEAST_EVERY_MS} to ${MOST_EVERY_MS}; got ${value}.`);
}
