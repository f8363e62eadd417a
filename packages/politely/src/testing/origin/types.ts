/// <reference lib="esnext.disposable" preserve="true" />
import type { Clock, Rate } from "../../types.js";

/** What every limit of an origin may say. */
export interface OriginLimitBase {
  /** What the origin calls it in `refusedBy` and in `RateLimit`. Default: its kind. Printable ASCII without `"` and `\`. */
  readonly name?: string;
  /** What is counted together. Default `"host"`. A header counts by its value, an API key say; who does not send it shares one count. */
  readonly countBy?: "host" | { readonly header: string };
  /** So many first requests of each count pass unseen. Default 0. */
  readonly afterCount?: number;
  /** The status of its refusals. Default: what `refusal` says. */
  readonly status?: number;
}

/**
 * One limit of an origin. A request has to pass all of them; one that is refused counts in none, but in a penalty box.
 *
 * - `leaky-bucket` is nginx's `limit_req`, in its arithmetic: whole milliseconds, thousandths of a request. `burst`
 *   (default 0) requests more than the steady rate are let in. They are held back to keep the rate: all of them but the
 *   first `delay` (default 0), or with `nodelay` none.
 * - `concurrency` is nginx's `limit_conn`: at most `count` in flight, from arrival until the last byte is sent.
 * - `fixed-window` lets in so many per window. `align: "wall"`, the default, cuts windows at multiples of their length
 *   on the origin's wall clock; `"first"` starts one with its first request.
 * - `sliding-window` lets in so many in every interval (t, t + P].
 * - `token-bucket` refills at `rate`, starts full and holds `burst` (default 1) tokens.
 * - `penalty-box` bans for `banMs` who comes more often than `rate`, the request that is one too many included. Each
 *   request during a ban adds `lengthenMs` (default `banMs`) to it, to no more than `maxBanMs` (default one day, or
 *   `banMs` if that is more) from then on. `counts: "refusals"` counts what other limits refuse instead of arrivals.
 */
export type OriginLimit = OriginLimitBase &
  (
    | {
        readonly kind: "leaky-bucket";
        readonly rate: Rate;
        readonly burst?: number;
        readonly nodelay?: boolean;
        readonly delay?: number;
      }
    | { readonly kind: "concurrency"; readonly count: number }
    | { readonly kind: "fixed-window"; readonly rate: Rate; readonly align?: "wall" | "first" }
    | { readonly kind: "sliding-window"; readonly rate: Rate }
    | { readonly kind: "token-bucket"; readonly rate: Rate; readonly burst?: number }
    | {
        readonly kind: "penalty-box";
        readonly rate: Rate;
        readonly banMs: number;
        readonly lengthenMs?: number;
        readonly maxBanMs?: number;
        readonly counts?: "arrivals" | "refusals";
      }
  );

/**
 * What a refusal says in `Retry-After`.
 *
 * `"seconds"` and `"date"` tell the truth: when the same request would be let in if nobody else came, rounded up to a
 * whole second, at least 1 as seconds. Where nobody can know, with `concurrency` alone, the field is absent. An object
 * with `times` or `plusMs` lies: the true wait times the one, plus the other, not below 0. `text` is sent as it is.
 */
export type OriginRetryAfter =
  | "seconds"
  | "date"
  | "absent"
  | { readonly as?: "seconds" | "date"; readonly times?: number; readonly plusMs?: number }
  | { readonly text: string };

/** How an origin refuses. */
export interface OriginRefusal {
  /** Default 429. Of a list the host's first refusal takes the first, and so on; the last is repeated. */
  readonly status?: number | readonly number[];
  /** Default `"seconds"`. */
  readonly retryAfter?: OriginRetryAfter;
  /** Default: `latency`, or 0 if that is a queue, since a refusal takes no worker. */
  readonly latency?: OriginLatency;
  /** Default `"Too many requests\n"`. */
  readonly body?: string;
}

/**
 * Which fields tell clients about the limits, on every answer. Concurrency and penalty boxes have nothing to tell.
 *
 * - `list`: `RateLimit-Policy: "name";q=10;w=60` and `RateLimit: "name";r=3;t=12`, each limit by its name.
 * - `triple`: `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset` of the limit with the least share remaining,
 *   and `RateLimit-Policy: 10;w=60` unless `list` is there too.
 * - `x`: `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `X-RateLimit-Reset` of the same limit.
 */
export interface OriginQuotaHeaders {
  readonly families: readonly ("list" | "triple" | "x")[];
  /** How `triple` and `x` write the reset: seconds from now (default), or Unix time on the origin's wall clock. */
  readonly resetAs?: "delta" | "epoch" | "epoch-ms";
  /** Default false: on every answer. */
  readonly onlyRefusals?: boolean;
}

/** A time that does not depend on load: a number of milliseconds, or drawn from the seed anew for each request. */
export type OriginDelay =
  | number
  | { readonly kind: "fixed"; readonly ms: number }
  | { readonly kind: "uniform"; readonly minMs: number; readonly maxMs: number }
  | {
      readonly kind: "log-normal";
      readonly medianMs: number;
      /** Deviation of the logarithm: 0.5 is a usual site, 1 a shaky one. From 0 to 5. */
      readonly sigma: number;
      /** Longer ones are cut to this. Default one minute, or the median if that is longer. */
      readonly maxMs?: number;
    };

/** How long an origin takes to answer. A queue has `workers` that take `service` for each request; the others wait their turn. */
export type OriginLatency =
  | OriginDelay
  | { readonly kind: "queue"; readonly service: OriginDelay; readonly workers: number };

/**
 * What goes wrong instead of an answer, or with it.
 *
 * `"reset"`: the connection breaks when the answer was due; `fetch` rejects with a `TypeError` whose cause has the code
 * `ECONNRESET`. `"timeout"`: nothing ever comes. `"stall"`: the headers and half of the body come, and then nothing.
 */
export type OriginFault = "reset" | "timeout" | "stall";

/** One answer in detail. */
export interface OriginAnswerDetails {
  /** From 200 to 599. Default 200; 302 with `redirect`. */
  readonly status?: number;
  /** Win over what the origin would send. At most 64. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Text is sent as UTF-8; `{ bytes }` as that many letters, at most 1 GiB. Default: a line that names status and path. */
  readonly body?: string | Uint8Array | { readonly bytes: number };
  /** Spreads the body over this time, in ten equal pieces, the last one at its end. Default 0. At most 16 MiB of body. */
  readonly bodyMs?: number;
  /** Sent as `ETag`. A GET or HEAD with the same tag, or `*`, in `If-None-Match` gets 304 without a body. */
  readonly etag?: string;
  /** Sent as `Location`. */
  readonly redirect?: string;
  /** Instead of the latency model, and without taking a worker. */
  readonly latencyMs?: number;
  readonly fault?: OriginFault;
}

/** One answer: a status, a fault, or the details. */
export type OriginAnswer = number | OriginFault | OriginAnswerDetails;

/** A request as it arrives. */
export interface OriginCall {
  /** When it arrived, in milliseconds on the origin's clock. */
  readonly atMs: number;
  readonly method: string;
  readonly url: string;
  /** Without the port, unless `hosts` names it with one. */
  readonly host: string;
  /** With the query. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** How many requests of this host came before it. */
  readonly index: number;
}

/** A request and what became of it, as decided when it arrived. A client that goes away changes nothing here. */
export interface OriginRequest extends OriginCall {
  /** The status given. Undefined when the connection breaks or no answer comes. */
  readonly status: number | undefined;
  /** The name of the first limit that refused it. */
  readonly refusedBy: string | undefined;
  /** How long after its arrival the same request would have been let in, if nobody else came. Infinity: nobody can know. 0 when it was let in. */
  readonly trueWaitMs: number;
  /** How long the site holds it back before working on it: nginx's delay. */
  readonly heldBackMs: number;
  readonly fault: OriginFault | undefined;
}

/** Decides an answer. `random` gives numbers from 0 up to 1 that depend on the seed and the host. Undefined is the plain answer. */
export type OriginAnswerer = (call: OriginCall, random: () => number) => OriginAnswer | undefined;

/** How one host behaves. */
export interface OriginBehaviour {
  /** Default none; at most 16. */
  readonly limits?: readonly OriginLimit[];
  readonly refusal?: OriginRefusal;
  /** Default: no such fields. */
  readonly quotaHeaders?: OriginQuotaHeaders;
  /**
   * What requests get that the limits let in and no page answers. Of a list the first such request takes the first
   * answer, and so on; after its end come plain answers, a 200. Default: plain answers.
   */
  readonly answers?: readonly OriginAnswer[] | OriginAnswerer;
  /** Answers for paths, with or without a query; the one with it goes first. Default none. */
  readonly pages?: Readonly<Record<string, OriginAnswer>>;
  /** The text of `/robots.txt`. Default: 404 for it. It counts towards the limits, and takes no answer of a list. */
  readonly robots?: string;
  /** From the end of `travel`, or of nginx's delay, until the headers of the answer. Default 0. */
  readonly latency?: OriginLatency;
  /** From the call until the request arrives and is counted. Requests may pass each other. Default 0. */
  readonly travel?: OriginDelay;
  /** On every answer. At most 64. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How far the origin's wall clock is ahead of the true one; negative is behind. For `Date`, dates and Unix times. Default 0. */
  readonly wallSkewMs?: number;
  /** Sends `Date`. Default true. */
  readonly dateHeader?: boolean;
}

/** The bounds of an origin, and where its time comes from. */
export interface OriginBounds {
  /** Default: the machine's clock. Tests pass a `VirtualClock`. */
  readonly clock?: Clock;
  /** The same seed gives the same latencies. A whole number. Default 1. */
  readonly seed?: number;
  /** How many of the newest requests are kept in `requests`, of each host and of all. Default 100,000. */
  readonly keepRequests?: number;
  /** One more arrival than this rejects: exact counts need every instant, 8 bytes each. Default 1,000,000. */
  readonly maxArrivals?: number;
  /** How many hosts it plays. A request to one more rejects. Default 10,000. */
  readonly maxHosts?: number;
  /** How many values of a header a limit tells apart at a time. A request with one more rejects. Default 10,000. */
  readonly maxClients?: number;
  /** How many requests may be in flight. One more is refused as by a full port: `ECONNREFUSED`, not recorded. Default 10,000. */
  readonly maxInFlight?: number;
}

/** What was seen: of one host, or of the whole origin. Always up to date; exact to the microsecond. */
export interface OriginCounts {
  /** The newest requests, oldest first; at most `keepRequests`. */
  readonly requests: readonly OriginRequest[];
  /** All that arrived, those refused included. */
  readonly total: number;
  /** Refused by a limit. A status from `answers` is no refusal. */
  readonly refused: number;
  /** From arrival until the last byte is sent, the client goes away, or the connection breaks. */
  readonly inFlight: number;
  readonly peakInFlight: number;
  /** Arrivals while a penalty box held a ban against them; the one that started it not included. */
  readonly arrivalsDuringBan: number;
  /** Arrivals after an answer with `Retry-After` went out and before its time was over, by what it said, true or not. */
  readonly arrivalsBeforeRetryAfter: number;
  /** The least time between two arrivals in a row; Infinity before the second. */
  readonly shortestGapMs: number;
  /** The most arrivals in any interval (t, t + P]: two that are exactly P apart are never in one. */
  mostInAny(periodMs: number): number;
}

/** How an origin listens. */
export interface ListenOptions {
  /** Default 0: any free one. */
  readonly port?: number;
  /** Default: the machine's clock. A test may pass the origin's own virtual clock, and has to move it then. */
  readonly clock?: Clock;
}

/** An origin that listens. */
export interface ListeningOrigin extends AsyncDisposable {
  /** `http://127.0.0.1:` and the port, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** Breaks what is open and frees the port. Calling it again changes nothing. The counts stay. */
  close(): Promise<void>;
}
