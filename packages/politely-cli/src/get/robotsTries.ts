import { isThrottled } from "./throttled.js";
import { causeText, machineFailure, unreachable } from "./verdict.js";

/** A site is asked for its robots.txt once, and so many times more at most: then the limiter gives it up. */
const MAX_TRIES = 4;
/** What the limiter reads of a robots.txt, and a little more. */
const MAX_BYTES = 600_000;

/** How often a robots.txt is asked for. */
export interface RobotsTriesOptions {
  /** How often one that could not be had is asked for again; above 4 counts as 4. */
  readonly repeats: number;
  /** Told of each failure that is followed by another try. */
  readonly again: (url: string, trouble: string) => void;
  /** Told of a failure of this machine, which says nothing about the site. */
  readonly broken: (error: unknown) => void;
}

/**
 * Sees to it that a robots.txt which could not be had is asked for again before its host is given up.
 *
 * The limiter leaves a site alone for a minute then, and refuses all its URLs. One that asks for patience is waited for instead: so a failure is passed
 * on as a 503 with a Retry-After of 1 s, 2 s, 4 s and 8 s, and only the last one as what it is. Each try goes through the limits of the host.
 */
export class RobotsTries {
  /** By origin: tries that failed in a row. Only of those that are being asked for. */
  readonly #failures = new Map<string, number>();

  constructor(readonly options: RobotsTriesOptions) {}

  /** Sends one request for a robots.txt, and reads the body as far as it is looked at. Rejects with an error that names the cause. */
  async send(url: string, send: () => Promise<Response>): Promise<Response> {
    const { origin } = new URL(url);
    const ended = await this.#outcomeOf(send);
    if (ended.trouble === undefined) {
      this.#failures.delete(origin);
      return ended.response;
    }
    const { repeats, again } = this.options;
    const failures = (this.#failures.get(origin) ?? 0) + 1;
    if (failures <= Math.min(repeats, MAX_TRIES)) {
      this.#failures.set(origin, failures);
      again(url, ended.trouble);
      return new Response(null, { status: 503, headers: { "retry-after": String(2 ** (failures - 1)) } });
    }
    this.#failures.delete(origin);
    if (ended.response !== undefined) return ended.response;
    throw unreachable(ended.trouble);
  }

  async #outcomeOf(send: () => Promise<Response>): Promise<Ending> {
    try {
      const response = await readSome(await send());
      const { status } = response;
      const isPassing = status >= 500 && !isThrottled(status, response.headers);
      const isTold = response.headers.get("retry-after") !== null;
      return isPassing && !isTold ? { trouble: `it answered ${status}`, response } : { response };
    } catch (error) {
      const trouble = causeText(error);
      const isBroken = machineFailure(error) !== undefined;
      if (isBroken) this.options.broken(error);
      // Broken off by us: that says nothing about the site either.
      if (isBroken || /\(UND_ERR_(DESTROYED|CLOSED|ABORTED)\)$/.test(trouble)) throw error;
      return { trouble };
    }
  }
}

type Ending =
  | { readonly trouble?: undefined; readonly response: Response }
  | { readonly trouble: string; readonly response?: Response };

/** The same answer with its body in memory: a body that breaks off is a failure, too. */
async function readSome(response: Response): Promise<Response> {
  const { status, headers } = response;
  const reader = response.body?.getReader();
  if (reader === undefined) return response;
  const pieces: Uint8Array[] = [];
  for (let bytes = 0; bytes < MAX_BYTES; ) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    bytes += value.length;
  }
  reader.cancel().catch(() => undefined);
  // Their bytes are decoded by now, so nobody must do it again.
  return new Response(status === 204 || status === 205 || status === 304 ? null : Buffer.concat(pieces), {
    status,
    headers: [...headers].filter(([name]) => name !== "content-encoding" && name !== "content-length"),
  });
}
