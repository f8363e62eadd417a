import type { Errand, Exchange } from "./exchange.js";
import { causeOf } from "./failure.js";
import type { Send } from "./fetch.js";
import { type Hop, isRedirect, nextHop, refuseCredentials } from "./redirect.js";
import { maxRobotsBytes } from "./robots/octets.js";
import type { RobotsFetchOutcome } from "./robots/robotsAction.js";
import { startTimeout } from "./timeout.js";

/** What came of asking for a robots.txt, with its body. */
export interface RobotsFetched extends RobotsFetchOutcome {
  readonly body: Uint8Array;
}

/** A site that has not answered by then counts as out of reach. */
const TIMEOUT_MS = 30_000;
/** The redirects that are followed; one more means that the site has no robots.txt. */
const MAX_HOPS = 5;
/** It goes before other requests of its host, since those behind it cannot go without it. */
const PRIORITY = 1_000_000;
const NO_BODY = new Uint8Array(0);

/**
 * Asks for a site's robots.txt through the limiter, redirects included, and reads at most 500 KiB of it. It goes the way of the
 * request it is asked for: through the same dispatcher, counted in the same scopes.
 *
 * Rejects only when the limiter does; a site that fails is an outcome.
 */
export async function fetchRobots(exchange: Exchange, send: Send, errand: Errand): Promise<RobotsFetched> {
  const { userAgent } = exchange.identity;
  const headers = new Headers({
    accept: "text/plain, */*;q=0.5",
    ...(userAgent === undefined ? {} : { "user-agent": userAgent }),
  });
  const { dispatcher, options: { scopes } = {} } = errand;
  const options = { priority: PRIORITY, ...(scopes === undefined ? {} : { scopes }) };
  const way = dispatcher === undefined ? {} : { dispatcher };
  let hop: Hop = { url: `${new URL(errand.url).origin}/robots.txt`, method: "GET", headers, hasBody: false };
  for (let redirects = 0; ; redirects++) {
    const flight = await exchange.enterUnasked({ url: hop.url, options });
    const timeout = startTimeout(exchange.pacer.clock, TIMEOUT_MS);
    flight.onEnd = () => timeout.stop();
    try {
      const { url } = hop;
      const init: RequestInit = { ...way, headers: hop.headers, redirect: "manual", signal: timeout.signal };
      const response = await exchange.sendOwn(url, flight, () => send(url, init));
      const { status } = response;
      flight.answered(status, response.headers);
      const location = isRedirect(status) ? response.headers.get("location") : null;
      if (location === null) {
        const body = await readSome(response);
        flight.done();
        return { status, redirects, headers: response.headers, body };
      }
      response.body?.cancel().catch(() => undefined);
      flight.done();
      if (redirects === MAX_HOPS) return { status, redirects: redirects + 1, body: NO_BODY };
      const next = hopTo(hop, status, location);
      if (next === undefined) return { status, redirects, body: NO_BODY };
      hop = next;
    } catch (error) {
      flight.failed(error);
      return { networkError: causeOf(error), body: NO_BODY };
    }
  }
}

/** Undefined for a redirect that leads nowhere. */
function hopTo(hop: Hop, status: number, location: string): Hop | undefined {
  try {
    const next = nextHop(hop, status, location);
    refuseCredentials(next, hop.url);
    return next;
  } catch {
    return undefined;
  }
}

/** The body as far as it is looked at; the rest is not fetched. */
async function readSome(response: Response): Promise<Uint8Array> {
  const reader = response.body?.getReader();
  if (reader === undefined) return NO_BODY;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // One byte beyond, so that the parser sees that there is more.
  while (bytes <= maxRobotsBytes) {
    const { done, value } = await reader.read();
    if (done) return joined(chunks);
    chunks.push(value);
    bytes += value.byteLength;
  }
  reader.cancel().catch(() => undefined);
  return joined(chunks);
}

/** The bytes of `chunks`, in memory of their own. */
function joined(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(chunks.reduce((bytes, chunk) => bytes + chunk.byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
