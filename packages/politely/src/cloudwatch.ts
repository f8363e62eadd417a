import { checkNames } from "./core/checkNames.js";
import { systemClock } from "./engine/systemClock.js";
import type { Lease, LeaseRefusal } from "./lease.js";
import { EmfWatch, readFrame } from "./observe/cloudwatch.js";
import type { MeasuredLimiter, MeasureOptions } from "./observe/watch.js";
import { durationUs } from "./policy/duration.js";
import type { Clock } from "./types.js";

export type { MeasuredLimiter, MeasureOptions, Soon, TokensOf } from "./observe/watch.js";

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
const LEAST_EVERY_MS = 1_000;
const MOST_EVERY_MS = 86_400_000;
/** Flushes need not be sharp. */
const SLACK_MS = 1_000;

/** Counts what a limiter does, and writes it as log lines from which CloudWatch makes metrics (embedded metric format). Counts are those since the last flush. */
export function emfMetrics(limiter: MeasuredLimiter, options: EmfOptions): EmfMetrics {
  checkNames(options, KNOWN_OPTIONS, "options");
  const { namespace, dimensions, write, everyMs: every, clock = systemClock(), ...measure } = options;
  if (typeof write !== "function") throw new TypeError(`write must be a function of a line; got ${typeof write}.`);
  const frame = readFrame(namespace, dimensions);
  const everyMs = readEvery(every);
  const emf = new EmfWatch(limiter, frame, measure);
  let timer: unknown;

  const flush = async (): Promise<void> => {
    const failures: unknown[] = [];
    for (const line of await emf.lines(() => clock.wall())) {
      try {
        write(line);
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  };
  const flushEvery = (ms: number): void => {
    const next = (): void => {
      // Nobody waits for this one; who wants to know what goes wrong calls flush.
      void flush().catch(() => undefined);
      flushEvery(ms);
    };
    timer = clock.setTimer(clock.now() + ms, next, SLACK_MS);
    clock.unref?.(timer);
  };
  if (everyMs !== undefined) flushEvery(everyMs);
  return {
    flush,
    countLease: (asked) => emf.watch.leases.count(asked),
    close() {
      clock.clearTimer(timer);
      emf.watch.close();
      return flush();
    },
  };
}

function readEvery(value: number | undefined): number | undefined {
  if (value === undefined) return undefined;
  const everyMs = durationUs(value, "everyMs") / 1_000;
  if (everyMs >= LEAST_EVERY_MS && everyMs <= MOST_EVERY_MS) return everyMs;
  throw new RangeError(`everyMs must be from ${LEAST_EVERY_MS} to ${MOST_EVERY_MS}; got ${value}.`);
}
