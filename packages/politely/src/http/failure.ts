/** How deep the causes of an error are followed. */
const MAX_DEPTH = 8;

const TIMEOUT_CODES: ReadonlySet<string> = new Set([
  "ETIMEDOUT",
  "ESOCKETTIMEDOUT",
  "ECONNABORTED",
  "ERR_SOCKET_CONNECTION_TIMEOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
]);

/** The request never left: its arguments were wrong, or the program took it back. */
const UNSENT_CODES: ReadonlySet<string> = new Set([
  "ERR_INVALID_URL",
  "ERR_INVALID_ARG_TYPE",
  "ERR_INVALID_ARG_VALUE",
  "ERR_INVALID_PROTOCOL",
  "ERR_INVALID_CHAR",
  "ERR_INVALID_HTTP_TOKEN",
  "UND_ERR_INVALID_ARG",
  "UND_ERR_NOT_SUPPORTED",
]);

/** The code of a redirect that cannot be followed: the site has answered, so it is no failure of the network. */
export const REDIRECT_CODE = "POLITELY_REDIRECT";

/** What the program did or cannot take says nothing about the site. */
const OWN_CODES: ReadonlySet<string> = new Set([
  REDIRECT_CODE,
  "UND_ERR_ABORTED",
  "UND_ERR_CLOSED",
  "UND_ERR_DESTROYED",
  "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH",
  "UND_ERR_RES_EXCEEDED_MAX_SIZE",
]);

/** An answer that is not compressed as it says: by gzip or deflate, brotli, zstd. */
const UNDECODABLE_CODE = /^(?:Z_|ERR__ERROR|ERR_BROTLI|ZSTD_)/;

/** What the platform says of arguments that it does not take. Words that an answer can also be the reason of are not among them. */
const ARGUMENT_WORDS =
  /^Request(?: constructor|Init):|is not an accepted type|valid HTTP method|HTTP method is unsupported|Request (?:with GET\/HEAD method )?cannot have (?:a )?body|cannot be constructed from a URL|invalid header (?:name|value)|'Request': member/;

/** Browsers say no more than this of a network that failed. Node and undici name a cause, whose code tells. */
const NETWORK_WORDS = /fetch failed|failed to fetch|load failed|networkerror|network error|terminated/i;
/** Deno and workers say this. */
const CONNECTION_WORDS = /error sending request|error reading a body|connection (?:closed|reset|refused|lost)/i;

/**
 * What a failed request says about its site: no answer in time, trouble on the way, or nothing since it was never sent.
 *
 * Undefined, which is neutral, when the caller gave up, when the answer is one that the program cannot take (a redirect that
 * may not be followed, say), and when nobody can tell: only what is known never to have left counts as that. A caller's own
 * `AbortSignal.timeout` counts as no answer in time.
 */
export function failureOf(error: unknown): FailureKind | undefined {
  let isNetwork = false;
  let current = error;
  for (let depth = 0; depth < MAX_DEPTH && typeof current === "object" && current !== null; depth++) {
    const { name, code, cause, message } = current as ErrorFields;
    if (name === "TimeoutError") return "timeout";
    if (name === "AbortError" || name === "CanceledError" || code === "ABORT_ERR") return undefined;
    if (typeof code === "string") {
      if (TIMEOUT_CODES.has(code)) return "timeout";
      if (UNSENT_CODES.has(code)) return "unused";
      if (OWN_CODES.has(code) || isUndecodable(current)) return undefined;
      if (isNetworkCode(code)) return "server_error";
    }
    if (depth === 0 && typeof message === "string") {
      const isTypeError = name === "TypeError";
      isNetwork = CONNECTION_WORDS.test(message) || (isTypeError && cause === undefined && NETWORK_WORDS.test(message));
      if (isTypeError && !isNetwork && ARGUMENT_WORDS.test(message)) return "unused";
    }
    current = cause;
  }
  return isNetwork ? "server_error" : undefined;
}

/** Whether an answer was not compressed as it said. */
function isUndecodable(error: unknown): boolean {
  const { code } = (error ?? {}) as ErrorFields;
  return typeof code === "string" && UNDECODABLE_CODE.test(code);
}

/** Names a failure for people: the code of its cause, else what its cause says, at most 100 characters. */
export function causeOf(error: unknown): string {
  let words = "the request failed";
  let current = error;
  for (let depth = 0; depth < MAX_DEPTH && typeof current === "object" && current !== null; depth++) {
    const { code, message, name, cause } = current as ErrorFields;
    if (name === "TimeoutError") return "no answer in time";
    if (typeof code === "string" && code !== "") return code.slice(0, 100);
    if (typeof message === "string" && message !== "") words = message;
    current = cause;
  }
  return words.slice(0, 100);
}

/** Whether an error came from the network, so that the same request may succeed later. */
export function isNetworkFailure(error: unknown): boolean {
  const outcome = failureOf(error);
  return outcome === "server_error" || outcome === "timeout";
}

/** What a failure may mean. */
type FailureKind = "server_error" | "timeout" | "unused";

interface ErrorFields {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly cause?: unknown;
  readonly message?: unknown;
}

/** System errors of sockets and names, what undici and Bun make of them, and what TLS says. */
function isNetworkCode(code: string): boolean {
  return /^(Connection[A-Z]|FailedToOpenSocket|DNSLookupFailed|E(CONN|PIPE|PROTO|HOST|NET|AI_|NOTFOUND|ADDR)|UND_ERR|ERR_(NETWORK|TLS|SSL|HTTP2|STREAM_PREMATURE)|CERT_|HPE_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(
    code,
  );
}
