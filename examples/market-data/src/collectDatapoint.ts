import { setTimeout as sleep } from "node:timers/promises";
import type { Limiter, Outcome, Target } from "politely";
import type { Datapoint } from "./datapoint.js";
import { type Answer, httpGet } from "./httpGet.js";

/** What collecting works with. */
export interface CollectParts {
  readonly polite: Limiter;
  /** How long one request may take. */
  readonly timeoutMs: number;
  readonly via: URL | undefined;
  /** Aborting it ends waits and requests; collecting then rejects with its reason. */
  readonly signal: AbortSignal;
  /** Told of every wait and every answer. */
  readonly say: (datapoint: Datapoint, text: string) => void;
}

const MAX_ATTEMPTS = 5;
/** Shorter waits are not worth a line. */
const SHORTEST_SAID_MS = 10;

/**
 * Collects one datapoint by hand: check, wait, send, record. Resolves to its text; undefined when it cannot be had in 5 attempts.
 *
 * `check` takes nothing, so two callers of one host could both be told to proceed: collect a host's datapoints one after the other.
 */
export async function collectDatapoint(datapoint: Datapoint, parts: CollectParts): Promise<string | undefined> {
  const target = { url: datapoint.url, intent: datapoint.intent };
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    await untilProceed(target, (text) => parts.say(datapoint, text), parts);
    const { outcome, answer, said } = await send(datapoint.url, parts);
    // Counts the request and hears the answer: a 429 with its Retry-After, an error that climbs the backoff, a success that ends it.
    parts.polite.record(target, outcome);
    parts.say(datapoint, said);
    // Whether to try again is decided here; when, by the limiter.
    if (answer !== undefined && answer.status < 300) return answer.body;
    if (answer !== undefined && answer.status < 500 && answer.status !== 429) return undefined;
  }
  return undefined;
}

async function untilProceed(target: Target, say: (text: string) => void, parts: CollectParts): Promise<void> {
  for (let look = parts.polite.check(target); !look.proceed; look = parts.polite.check(target)) {
    if (look.waitMs >= SHORTEST_SAID_MS) say(`waits ${Math.round(look.waitMs)} ms: ${look.reason ?? ""}`);
    await sleep(Math.ceil(look.waitMs), undefined, { signal: parts.signal });
  }
}

interface Sent {
  readonly outcome: Outcome;
  readonly answer?: Answer;
  readonly said: string;
}

async function send(url: string, { timeoutMs, via, signal }: CollectParts): Promise<Sent> {
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await httpGet(url, { via, signal: AbortSignal.any([signal, timeout]) });
    return { outcome: { status: answer.status, headers: answer.headers }, answer, said: `got ${answer.status}` };
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted) return { outcome: "timeout", said: `no answer within ${timeoutMs} ms` };
    return { outcome: "server_error", said: `failed: ${(error as Error).message}` };
  }
}
