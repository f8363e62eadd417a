import { NOBODY } from "../core/key.js";
import type { Cause } from "../observe/types.js";
import { type Costs, keyName, type Need, type TellAt } from "./arbiter.js";
import type { Queue } from "./queue.js";

/** When to look again who waits for an answer of which nobody knows when it comes, or for nothing but others ahead. */
const LOOK_AGAIN_US = 250_000;
export const BEHIND_OTHERS_MS = 100;

/** How long a request would wait, and why. */
export interface WaitTold {
  readonly waitMs: number;
  /** The most binding cause, in a sentence without a full stop. */
  readonly reason: string;
}

/** When a request could start, and why not now. */
export interface Outlook extends WaitTold {
  /** The earliest instant; a lower bound where somebody is ahead or an answer is waited for. */
  readonly atUs: number;
  /** How long to wait before looking again. Where only an answer can tell, or others are ahead, it is a guess. */
  readonly lookMs: number;
  readonly isEstimate: boolean;
  /** Everything in the way, the most binding first. */
  readonly causes: readonly Cause[];
}

/** What stands in the way of a request. `priority`: of a newcomer, who comes after those ahead in its lane; undefined for one that waits already, judged as if it were first. */
export function outlookOf(queue: Queue, need: Need, costs: Costs, nowUs: number, priority?: number): Outlook {
  const { arbiter, isShared } = queue.engine;
  const lane = queue.lanes.get(need.name);
  const ahead = priority === undefined ? NOBODY : (lane?.aheadOf(priority) ?? NOBODY);
  /** By key and words: of what stops the head as well, the longer wait. */
  const told = new Map<string, Cause>();
  const stopped = new Set<number>();
  let atUs = Math.max(nowUs, queue.pausedUntilUs);
  let lookUs = nowUs;
  let isEstimate = false;
  const tell: TellAt = (index, limit, earliestUs, words, awaitedUntilUs, because) => {
    atUs = Math.max(atUs, earliestUs);
    if (awaitedUntilUs !== undefined) {
      isEstimate = true;
      lookUs = Math.max(lookUs, Math.min(awaitedUntilUs, nowUs + LOOK_AGAIN_US));
    }
    const key = keyName(need, index);
    const waitMs = Math.max(earliestUs - nowUs, 0) / 1000;
    const name = `${index} ${words}`;
    if (waitMs < (told.get(name)?.waitMs ?? 0)) return;
    const cause = { limit, scope: need.scopeNames[index], key, waitMs, message: `${key}: ${words}${until(waitMs)}` };
    told.set(name, because === undefined ? cause : { ...cause, because });
  };
  const head = ahead.requests > 0 ? lane?.head : undefined;
  // The head may cost more, and nobody of its lane starts before it.
  if (head !== undefined && head.costs !== costs) arbiter.look(need, head.costs, nowUs, NOBODY, tell);
  arbiter.look(need, costs, nowUs, ahead, (index, ...rest) => {
    stopped.add(index);
    tell(index, ...rest);
  });
  const causes = Array.from(told.values());
  if (queue.pausedUntilUs > nowUs) {
    const waitMs = (queue.pausedUntilUs - nowUs) / 1000;
    causes.unshift({ limit: "pause", scope: "all", key: "*", waitMs, message: `everything is paused${until(waitMs)}` });
  }
  need.slots.forEach((slot, index) => {
    const gate = queue.gateAt(slot);
    if (gate === undefined || stopped.has(index)) return;
    const isKept = queue.isKeptAt(gate);
    // Where the order of lanes is a store's to keep, nobody waits for any lane but its own.
    const isAhead = isShared ? index === 0 && lane !== undefined : gate.parked.size > 0;
    if (!isKept && !isAhead) return;
    const key = keyName(need, index);
    const message = `${gate.waiting} ${gate.waiting === 1 ? "request waits" : "requests wait"} for ${key} already`;
    causes.push({ limit: isKept ? "reserved" : "queue", scope: need.scopeNames[index], key, waitMs: 0, message });
  });
  causes.sort((a, b) => b.waitMs - a.waitMs);
  const reason = causes[0]?.message ?? "it is not its turn yet";
  const waitMs = (atUs - nowUs) / 1000;
  const lookMs = (Math.max(atUs, lookUs) - nowUs) / 1000 || BEHIND_OTHERS_MS;
  return { atUs, waitMs, lookMs, isEstimate: isEstimate || waitMs === 0, causes, reason };
}

/** How long it takes, as the end of a sentence. */
export function until(waitMs: number): string {
  if (waitMs === Number.POSITIVE_INFINITY) return " until it is resumed";
  if (waitMs === 0) return ", until an answer comes";
  if (waitMs < 1000) return `, ${Math.ceil(waitMs)} ms to go`;
  if (waitMs < 600_000) return `, ${Math.ceil(waitMs / 100) / 10} s to go`;
  if (waitMs < 7_200_000) return `, ${Math.ceil(waitMs / 60_000)} min to go`;
  return `, ${Math.ceil(waitMs / 360_000) / 10} h to go`;
}
