import { type LogRecord, type Place, type Server, startServer } from "./server.js";

/** What haproxy allows one host: `count` requests in its estimate of the last `perMs`. */
export interface HaproxyLimits {
  /** A whole number from 1. */
  readonly count: number;
  /** Default 1,000. */
  readonly perMs?: number;
}

/** How to start haproxy. */
export interface HaproxyOptions {
  /** One host for each entry, from 127.0.0.2 on. */
  readonly limits: readonly HaproxyLimits[];
  /** What a 429 carries. Default 2. */
  readonly retryAfterSec?: number;
}

/**
 * Starts haproxy. Every path of a host answers 200, or 429 with Retry-After when there are too many.
 *
 * `http_req_rate` is an estimate. Time is cut into periods of `perMs`, the first beginning with the first request and
 * again with any after two empty periods. The estimate is the requests of this period, plus those of the last one times
 * the share of this period that is still to come, rounded down; above `count` it refuses. A refused request counts too.
 *
 * So a policy keeps within it when, over a span of `perMs`, burst plus refill is at most `count`: 19 a second with burst 1, or 10 a
 * second with burst 10, where `count` is 20. An exact window of `count` per `perMs` does not: a burst at the begin of two periods in a row
 * looks like twice as many. A window of `count` per two `perMs`, or of half of `count` per `perMs`, does.
 */
export function startHaproxy(options: HaproxyOptions): Promise<Server> {
  const { limits, retryAfterSec = 2 } = options;
  limits.forEach(checkLimits);
  return startServer({
    name: "haproxy",
    hostCount: limits.length,
    retryAfterSec,
    files: (place) => ({ "haproxy.cfg": configuration(place, limits, retryAfterSec) }),
    // -db: one process, in the foreground.
    args: () => ["-db", "-f", "haproxy.cfg"],
    readLine,
  });
}

function readLine(line: string): LogRecord {
  const { atUs, userAgent, ...rest } = JSON.parse(line) as Omit<LogRecord, "atMs"> & { readonly atUs: number };
  // What is absent is logged as a hyphen.
  return { atMs: atUs / 1_000, userAgent: userAgent === "-" ? "" : userAgent, ...rest };
}

function checkLimits({ count, perMs = 1_000 }: HaproxyLimits): void {
  if (!(Number.isInteger(count) && count >= 1))
    throw new RangeError(`count must be a whole number from 1; got ${count}`);
  if (!(Number.isInteger(perMs) && perMs >= 1))
    throw new RangeError(`perMs must be a whole number from 1; got ${perMs}`);
}

function configuration(place: Place, limits: readonly HaproxyLimits[], retryAfterSec: number): string {
  const { port, addresses, controlAddress } = place;
  return `
global
  nbthread 1
  maxconn 2000
  pidfile haproxy.pid
  log stdout format raw local0

defaults
  mode http
  log global
  timeout client 60s
  timeout http-request 10s
  timeout http-keep-alive 60s
  log-format '{"atUs":%[var(txn.at)],"status":%ST,"host":"%[dst]","path":"%[var(txn.path),json(utf8s)]","userAgent":"%[var(txn.agent),json(utf8s)]"}'

frontend control
  bind ${controlAddress}:${port}
${arrival}
  http-request return status 204
${limits.map((limit, index) => frontend(`${addresses[index]}:${port}`, limit, index, retryAfterSec)).join("\n")}
`;
}

/** Notes what the log needs. The time is the one the counter goes by, too. */
const arrival = `  http-request set-var(txn.at) date(0,us)
  http-request set-var(txn.path) pathq
  http-request set-var(txn.agent) req.hdr(user-agent)`;

function frontend(bind: string, { count, perMs = 1_000 }: HaproxyLimits, index: number, retryAfterSec: number): string {
  return `
frontend host${index}
  bind ${bind}
  stick-table type ip size 1k expire ${Math.max(60_000, 3 * perMs)}ms store http_req_rate(${perMs}ms)
${arrival}
  http-request track-sc0 dst
  http-request deny deny_status 429 hdr Retry-After ${retryAfterSec} if { sc_http_req_rate(0) gt ${count} }
  http-request return status 200 content-type text/plain string "polite"`;
}
