import { setTimeout as delay } from "node:timers/promises";
import type { UrlQueue } from "./urlQueue.js";

/** How long a queue is tried. */
export interface PatienceOptions {
  /** After so much time without an answer the last error is thrown. */
  readonly giveUpMs: number;
  /** Told once for each time that the store is away. */
  readonly log: (line: string) => void;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/** A queue that asks again while its store is away. Everything it does may be done twice, save that URLs claimed with an answer that got lost stay claimed. */
export function patientQueue(queue: UrlQueue, options: PatienceOptions): UrlQueue {
  const ask = <Answer>(work: () => Promise<Answer>): Promise<Answer> => patiently(work, options);
  return {
    add: (urls) => ask(() => queue.add(urls)),
    begin: (given) => ask(() => queue.begin(given)),
    keys: (after, count) => ask(() => queue.keys(after, count)),
    claim: (key, count) => ask(() => queue.claim(key, count)),
    finish: (urls) => ask(() => queue.finish(urls)),
    renew: () => queue.renew(),
    counts: () => ask(() => queue.counts()),
    countsByKey: (count) => ask(() => queue.countsByKey(count)),
    close: () => queue.close(),
  };
}

async function patiently<Answer>(work: () => Promise<Answer>, { giveUpMs, log }: PatienceOptions): Promise<Answer> {
  const endMs = performance.now() + giveUpMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, 2 * pauseMs)) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() + pauseMs > endMs) throw error;
      if (pauseMs === FIRST_PAUSE_MS) log(`the shared list cannot be reached, trying again: ${String(error)}`);
      await delay(pauseMs);
    }
  }
}
