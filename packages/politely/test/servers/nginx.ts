import { type LogRecord, type Place, type Server, startServer } from "./server.js";

const maxAnswerMs = 1_000;
/** An answer that takes time is sent in two pieces; the second is what does not fit here, headers included. */
const pieceBytes = 1_000;
const pageBytes = 1_200;

/** What nginx allows one host. What is left out is not limited. */
export interface NginxLimits {
  /** `limit_req`: requests per second, a whole number. */
  readonly perSecond?: number;
  /** How many may come early on top of the one that is due; they are answered at once (`nodelay`). Default 0. */
  readonly burst?: number;
  /** `limit_conn`: requests under way at once. A request is under way until the last byte of its body is sent. */
  readonly connections?: number;
  /** About how long an answer takes, from 0 to 1,000 ms. The headers come at once, the end of the body after this time. Default 0. */
  readonly answerMs?: number;
}

/** How to start nginx. */
export interface NginxOptions {
  /** One host for each entry, from 127.0.0.2 on. */
  readonly limits: readonly NginxLimits[];
  /** What a 429 carries. Default 2. */
  readonly retryAfterSec?: number;
  /** The text of /robots.txt on every host. Default: none, so 404. It is limited like every other path. */
  readonly robots?: string;
}

/**
 * Starts nginx. Every path of a host answers 200 with the same page, or 429 with Retry-After when there are too many.
 *
 * `limit_req` keeps an `excess` in thousandths of a request: it falls by `perSecond` each millisecond and rises by 1000
 * with a request; where that makes it more than 1000 times `burst`, the request is refused and costs nothing. Time is
 * in whole milliseconds, so a request that arrives the full gap after the last one is never refused. Arrival is what
 * counts: without burst, a client that starts every 50 ms is refused now and then at 20 a second, because the way takes
 * longer for one request than for the next. Counting from the answer (`countFrom: "answer"`) is safe: a gap without
 * burst, and with one a window of what nginx allows at once, which is `burst` + 1, in the time in which it forgets that
 * many. A bucket counts from the start, so that even a smaller burst is safe only while the way differs by less than what it leaves free.
 */
export function startNginx(options: NginxOptions): Promise<Server> {
  const { limits, retryAfterSec = 2, robots } = options;
  limits.forEach(checkLimits);
  return startServer({
    name: "nginx",
    hostCount: limits.length,
    retryAfterSec,
    files: (place) => ({
      "nginx.conf": configuration(place, limits, retryAfterSec),
      page: "polite\n".padEnd(pageBytes, "."),
      ...(robots === undefined ? {} : { "robots.txt": robots }),
    }),
    args: ({ folder }) => ["-p", folder, "-e", "stderr", "-c", "nginx.conf"],
    readLine,
  });
}

function readLine(line: string): LogRecord {
  const { loggedAtSec, tookSec, ...rest } = JSON.parse(line) as Omit<LogRecord, "atMs"> & {
    readonly loggedAtSec: number;
    readonly tookSec: number;
  };
  return { atMs: Math.round((loggedAtSec - tookSec) * 1_000), ...rest };
}

function checkLimits({ perSecond, burst = 0, connections, answerMs = 0 }: NginxLimits): void {
  const isCount = (value: number | undefined, from: number): boolean =>
    value === undefined || (Number.isInteger(value) && value >= from);
  if (!isCount(perSecond, 1)) throw new RangeError(`perSecond must be a whole number from 1; got ${perSecond}`);
  if (!isCount(burst, 0)) throw new RangeError(`burst must be a whole number from 0; got ${burst}`);
  if (!isCount(connections, 1)) throw new RangeError(`connections must be a whole number from 1; got ${connections}`);
  if (!(answerMs >= 0 && answerMs <= maxAnswerMs)) {
    throw new RangeError(`answerMs must be from 0 to ${maxAnswerMs}; got ${answerMs}`);
  }
}

// One process without a master: nothing is left over when it is killed. One worker also means that the log is in order.
function configuration(place: Place, limits: readonly NginxLimits[], retryAfterSec: number): string {
  const { port, addresses, controlAddress } = place;
  return `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr error;
events { worker_connections 2048; }
http {
  ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path temp-${kind};`).join("\n  ")}
  default_type text/plain;
  keepalive_requests 1000000;
  limit_req_status 429;
  limit_conn_status 429;
  limit_req_log_level notice;
  limit_conn_log_level notice;
  # The time of the line and how long the request took: their difference is when it arrived.
  log_format record escape=json '{"loggedAtSec":$msec,"tookSec":$request_time,"status":$status,'
    '"host":"$server_addr","path":"$request_uri","userAgent":"$http_user_agent"}';
  access_log access.log record;
  server {
    listen ${controlAddress}:${port};
    location / { return 204; }
  }
${limits.map((limit, index) => hostBlock(`${addresses[index]}:${port}`, limit, index, retryAfterSec)).join("\n")}
}
`;
}

function hostBlock(listen: string, limits: NginxLimits, index: number, retryAfterSec: number): string {
  const { perSecond, burst = 0, connections, answerMs = 0 } = limits;
  const lines = [
    ...(perSecond === undefined
      ? []
      : [`limit_req zone=requests${index}${burst > 0 ? ` burst=${burst} nodelay` : ""};`]),
    ...(connections === undefined ? [] : [`limit_conn connections${index} ${connections};`]),
    ...(answerMs === 0
      ? []
      : [`sendfile_max_chunk ${pieceBytes};`, `limit_rate ${Math.round((pieceBytes * 1_000) / answerMs)};`]),
  ];
  return `
  ${perSecond === undefined ? "" : `limit_req_zone $server_addr zone=requests${index}:64k rate=${perSecond}r/s;`}
  ${connections === undefined ? "" : `limit_conn_zone $server_addr zone=connections${index}:64k;`}
  server {
    listen ${listen};
    root .;
    ${lines.join("\n    ")}
    error_page 429 @refused;
    # Files, since a plain "return 200" is answered before limits are looked at.
    location / { try_files /page =404; }
    location = /robots.txt { try_files /robots.txt =404; }
    location @refused { add_header Retry-After ${retryAfterSec} always; return 429 "too many requests\\n"; }
  }`;
}
