/// <reference lib="esnext.disposable" preserve="true" />
import type { Clock, Rate } from "../../types.js";

/**
 * One limit of an origin. A request has to pass all of them; one that is refused counts in none, but in a penalty box.
 *
 * - `leaky-bucket` is nginx's `limit_req`, in its arithmetic: whole milliseconds, thousandths of a request. `burst`
 *   (default 0) requests more than the steady rate are let in. They are held back to keep the rate, with `nodelay` not.
 * - `concurrency` is nginx's `limit_conn`: at most `count` in flight, from arrival until the last byte is sent.
 * - `fixed-window` lets in so many per window. Windows are cut at multiples of their length on the origin's wall clock.
 * - `sliding-window` lets in so many in every interval (t, t + P].
 * - `token-bucket` refills at `rate`, starts full and holds `burst` (default 1) tokens.
 * - `penalty-box` bans for `banMs` who comes more often than `rate`, the request that is one too many included. Each
 *   request during a ban adds `lengthenMs` (default `banMs`) to it, to no more than a day, or `banMs` if that is more.
 */
export type OriginLimit = {
  /** What the origin calls it in `refusedBy` and in `RateLimit`. Default: its kind. Printable ASCII without `"` and `\`. */
  readonly name?: string;
  /** What is counted together. Default `"host"`. A header counts by its value, an API key say; who does not send it shares one count. */
  readonly countBy?: "host" | { readonly header: string };
} & (
  | { readonly kind: "leaky-bucket"; readonly rate: Rate; readonly burst?: number; readonly nodelay?: boolean }
  | { readonly kind: "concurrency"; readonly count: number }
  | { readonly kind: "fixed-window" | "sliding-window"; readonly rate: Rate }
  | { readonly kind: "token-bucket"; readonly rate: Rate; readonly burst?: number }
  | { readonly kind: "penalty-box"; readonly rate: Rate; readonly banMs: number; readonly lengthenMs?: number }
);

/**
 * What a refusal says in `Retry-After`.
 *
 * `"seconds"` and `"date"` tell the truth: when the same request would be let in if nobody else came, rounded up to a
 * whole second, at least 1 as seconds. Where nobody can know, with `concurrency` alone, the field is absent. `plusMs`
 * lies: the true wait and that, in seconds, not below 0. `text` is sent as it is.
 */
export type OriginRetryAfter = "seconds" | "date" | "absent" | { readonly plusMs: number } | { readonly text: string };

/** How an origin refuses. */
export interface OriginRefusal {
  /** Default 429. Of a list the host's first refusal takes the first, and so on; the last is repeated. */
  readonly status?: number | readonly number[];
  /** Default `"seconds"`. */
  readonly retryAfter?: OriginRetryAfter;
  /** Default: `latency`, or 0 if that is a queue, since a refusal takes no worker. */
  readonly latency?: OriginLatency;
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
}

/** A time that does not depend on load: a number of milliseconds, or drawn from the seed anew for each request. */
export type OriginDelay =
  | number
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
  /** At most 64. They go over what the origin would send. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Text, bytes, or so many letters, made up as they are sent, up to 1 GiB. Default: a plain line with status and path. */
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
  /** How far the origin's wall clock is ahead of the true one; negative is behind. For `Date`, dates and Unix times. Default 0. */
  readonly wallSkewMs?: number;
}

/** How an origin behaves. The behaviour given here is that of every host that `hosts` does not name. */
export interface VirtualOriginOptions extends OriginBehaviour {
  /** Hosts that behave in their own way, by name, with a port if it matters. An entry replaces the behaviour outside it as a whole. Default none. */
  readonly hosts?: Readonly<Record<string, OriginBehaviour>>;
  /** Default: the machine's clock. Tests pass a `VirtualClock`. */
  readonly clock?: Clock;
  /** The same seed gives the same latencies. A whole number. Default 1. */
  readonly seed?: number;
  /** How many of the newest requests are kept in `requests`, of each host and of all. Default 100,000. */
  readonly keepRequests?: number;
  /** One more arrival than this rejects: exact counts need every instant, 8 bytes each. Default 1,000,000. */
  readonly maxArrivals?: number;
}

/** How an origin listens. */
export interface ListenOptions {
  /** Default 0: any free one. */
  readonly port?: number;
}

/** An origin that listens. */
export interface ListeningOrigin extends AsyncDisposable {
  /** `http://127.0.0.1:` and the port, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** Breaks what is open and frees the port. Calling it again changes nothing. The counts stay. */
  close(): Promise<void>;
}
