import { type Limiter, type LimiterEvent, type PolicyInput, politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";

/** One answer of a scripted site: a status, a status with headers, or an error to fail with. */
export type Scripted =
  | number
  | { status: number; headers?: Record<string, string>; body?: string | null; latencyMs?: number }
  | Error;

/** A request as the site saw it. */
export interface Seen {
  readonly atMs: number;
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | null;
}

/** A limiter on virtual time whose requests are answered by `answer`, which is given their number from 0. */
export function scriptedSite(
  policy: PolicyInput,
  answer: (index: number, seen: Seen) => Scripted,
): { clock: VirtualClock; polite: Limiter; seen: Seen[]; events: LimiterEvent[] } {
  const clock = new VirtualClock();
  const seen: Seen[] = [];
  const events: LimiterEvent[] = [];
  const polite = politely(policy, {
    clock,
    random: () => 0,
    fetch: async (input, init) => {
      const request = new Request(input, init);
      init?.signal?.throwIfAborted();
      const entry: Seen = {
        atMs: clock.now(),
        url: request.url,
        method: request.method,
        headers: request.headers,
        body: request.body === null ? null : await request.text(),
      };
      seen.push(entry);
      const scripted = answer(seen.length - 1, entry);
      if (scripted instanceof Error) throw scripted;
      const {
        status,
        headers = {},
        body = `page ${seen.length}`,
        latencyMs = 0,
      } = typeof scripted === "number" ? { status: scripted } : scripted;
      if (latencyMs > 0) await wait(clock, latencyMs, init?.signal ?? undefined);
      const response = new Response([204, 304].includes(status) ? null : body, { status, headers });
      Object.defineProperty(response, "url", { value: entry.url });
      return response;
    },
  });
  polite.subscribe((event) => events.push(event));
  return { clock, polite, seen, events };
}

/** A failure of the network as Node's fetch reports it. */
export function networkFailure(code: string): TypeError {
  return new TypeError("fetch failed", { cause: Object.assign(new Error(code), { code }) });
}

function wait(clock: VirtualClock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(clock.now() + ms, resolve);
    signal?.addEventListener("abort", () => {
      clock.clearTimer(timer);
      reject(signal.reason);
    });
  });
}
