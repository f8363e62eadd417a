import type { Exchange } from "./exchange.js";
import type { Send } from "./fetch.js";
import { isRedirect, nextHop } from "./redirect.js";
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
 * Asks for a site's robots.txt through the limiter, redirects included, and reads at most 500 KiB of it.
 *
 * Rejects only when the limiter does; a site that fails is an outcome.
 */
export async function fetchRobots(exchange: Exchange, send: Send, origin: string): Promise<RobotsFetched> {
  const { userAgent } = exchange.identity;
  const headers = new Headers({
    accept: "text/plain, */*;q=0.5",
    ...(userAgent === undefined ? {} : { "user-agent": userAgent }),
  });
  let hop = { url: `${origin}/robots.txt`, method: "GET", headers, hasBody: false };
  for (let redirects = 0; ; redirects++) {
    const flight = await exchange.enterUnasked({ url: hop.url, options: { priority: PRIORITY } });
    const timeout = startTimeout(exchange.pacer.clock, TIMEOUT_MS, undefined);
    flight.onEnd = () => timeout.stop();
    try {
      const { url } = hop;
      const init = { headers: hop.headers, redirect: "manual", signal: timeout.signal } as const;
      const response = await exchange.sendOwn(url, () => send(url, init));
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
      hop = nextHop(hop, status, location);
    } catch (error) {
      flight.failed(error);
      return { networkError: error instanceof Error ? error.message : String(error), body: NO_BODY };
    }
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
    if (done) return joined(chunks, bytes);
    chunks.push(value);
    bytes += value.byteLength;
  }
  reader.cancel().catch(() => undefined);
  return joined(chunks, bytes);
}

function joined(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
