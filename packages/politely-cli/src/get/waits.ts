import type { Explanation, SharedLimiter } from "politely";
import { nextStartMs } from "../view/nextStart.js";
import type { HostWait } from "./observer.js";

/** What was said is used for so long; where it was a longer wait, for a second. */
const FRESH_MS = 200;
const FRESH_LONG_MS = 1_000;
const MAX_ASKED = 50;
const MAX_KNOWN = 1_000;

interface Known {
  readonly atMs: number;
  readonly explanation: Explanation;
}

/** Remembers what the limiter last said of why hosts wait, and asks it again once that is 200 ms old, or a second for those who wait longer. */
export class Waits {
  readonly #known = new Map<string, Known>();
  readonly #asking = new Set<string>();

  constructor(readonly limiter: Pick<SharedLimiter, "explain">) {}

  of(keys: readonly string[]): ReadonlyMap<string, HostWait> {
    const nowMs = performance.now();
    const waits = new Map<string, HostWait>();
    for (const key of keys.slice(0, MAX_ASKED)) {
      const known = this.#known.get(key);
      if (known === undefined || isOld(known, nowMs)) this.#ask(key);
      if (known !== undefined) waits.set(key, waitOf(known, nowMs));
    }
    return waits;
  }

  #ask(key: string): void {
    if (this.#asking.has(key)) return;
    this.#asking.add(key);
    const heard = (explanation: Explanation): void => {
      if (this.#known.size >= MAX_KNOWN) this.#known.clear();
      this.#known.set(key, { atMs: performance.now(), explanation });
    };
    this.limiter
      .explain(key)
      .then(heard)
      // A store that is away leaves the picture as it was.
      .catch(() => undefined)
      .finally(() => this.#asking.delete(key));
  }
}

/** One that waits longer than what was said is used for is the same at the end of that. */
function isOld({ atMs, explanation }: Known, nowMs: number): boolean {
  const ageMs = nowMs - atMs;
  return ageMs >= FRESH_LONG_MS || (ageMs >= FRESH_MS && explanation.waitMs - ageMs < FRESH_LONG_MS);
}

function waitOf({ atMs, explanation }: Known, nowMs: number): HostWait {
  const left = (waitMs: number): number => Math.max(0, waitMs - (nowMs - atMs));
  // A wait that is over is no reason any more, unless that was a moment ago: a host at its limit waits again by now.
  const isPast = nowMs - atMs > Math.max(explanation.waitMs, 2 * FRESH_MS);
  const [first] = isPast ? [] : explanation.causes;
  const cooldown = explanation.causes.find(({ limit }) => limit === "cooldown");
  return {
    nextStartMs: left(nextStartMs(explanation)),
    cooldownMs: cooldown === undefined ? 0 : left(cooldown.waitMs),
    ...(first === undefined ? {} : { reason: first.message }),
    ...(cooldown?.because === undefined ? {} : { because: cooldown.because }),
  };
}
