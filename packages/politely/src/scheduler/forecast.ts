import type { Rule } from "../core/rule.js";
import type { Cause, LimitKind } from "../observe/types.js";
import { type SlotCause, slotCauses } from "./causes.js";
import type { Counsel } from "./counsel.js";
import type { LaneCost, LaneSpec } from "./lane.js";
import type { Ledger } from "./ledger.js";
import type { Queue } from "./queue.js";

/** What a forecast is made from. */
export interface ForecastSource {
  readonly ledger: Ledger;
  readonly queue: Queue;
  readonly counsel?: Counsel | undefined;
}

/** The earliest instant at which a request could start, as far as this process and the store's last answer know. */
export function earliestUs(source: ForecastSource, spec: LaneSpec, cost: LaneCost, nowUs: number): number {
  let atUs = Math.max(nowUs, source.queue.pausedUntilUs);
  for (const slot of spec.slots)
    for (const cause of slotCauses(source.ledger, slot, nowUs)) atUs = Math.max(atUs, cause.atUs);
  return Math.max(atUs, source.counsel?.outlook(spec, cost, nowUs)?.atUs ?? nowUs);
}

/** Why a request waits now, in a sentence without a full stop. */
export function reasonOf(source: ForecastSource, spec: LaneSpec, cost: LaneCost, nowUs: number): string {
  return causesOf(source, spec, cost, nowUs)[0]?.message ?? "it is not its turn yet";
}

/** Everything that stands in the way of a request, the most binding first. */
export function causesOf(source: ForecastSource, spec: LaneSpec, cost: LaneCost, nowUs: number): Cause[] {
  const { ledger, queue } = source;
  const causes: Cause[] = [];
  if (queue.pausedUntilUs > nowUs) {
    const waitMs = (queue.pausedUntilUs - nowUs) / 1000;
    causes.push({ limit: "pause", scope: "all", key: "*", waitMs, message: `everything is paused${until(waitMs)}` });
  }
  const outlook = source.counsel?.outlook(spec, cost, nowUs);
  spec.slots.forEach((slot, index) => {
    const scope = spec.scopeNames[index];
    const key = keyName(spec, index);
    const { rule } = ledger.profileOf(slot);
    const describe = (cause: SlotCause): Cause =>
      describeCause(cause, { scope, key, rule, because: becauseOf(ledger, slot, cause.limit), nowUs });
    const own = slotCauses(ledger, slot, nowUs);
    causes.push(...own.map(describe));
    if (outlook?.index === index) {
      const because = outlook.because === "" ? undefined : outlook.because;
      causes.push(describeCause(outlook, { scope, key, rule, because, words: outlook.words, nowUs }));
    }
    const gate = queue.gateAt(slot);
    if (own.length > 0 || gate === undefined) return;
    const isWaitedFor = queue.isWaitedAt(gate, spec, nowUs) || source.counsel?.isWaitedFor(spec, index) === true;
    if (!isWaitedFor) return;
    const limit = "queue";
    const others = `${gate.waiting} ${gate.waiting === 1 ? "request waits" : "requests wait"} for ${key} already`;
    causes.push({ limit, scope, key, waitMs: 0, message: others });
  });
  return causes.sort((a, b) => b.waitMs - a.waitMs);
}

/** What a key of a lane is called in a sentence. */
export function keyName({ key, intent, scopeNames }: LaneSpec, index: number): string {
  const scope = scopeNames[index];
  return scope === "host" ? key : scope === "intent" ? `${key} (${intent})` : scope;
}

interface CauseContext {
  readonly scope: string;
  readonly key: string;
  readonly rule: Rule;
  /** What was answered or read, where that is the cause. */
  readonly because: string | undefined;
  /** The limit in words, where it is not one of the rule. */
  readonly words?: string | undefined;
  readonly nowUs: number;
}

/** A cause in words. */
export function describeCause(cause: SlotCause, context: CauseContext): Cause {
  const { scope, key, rule, because, words, nowUs } = context;
  const waitMs = (cause.atUs - nowUs) / 1000;
  const message = `${key}: ${words ?? wording(cause, rule, because)}${until(waitMs)}`;
  const described = { limit: cause.limit, scope, key, waitMs, message };
  return because === undefined ? described : { ...described, because };
}

/** What was answered or read that makes this limit bind; undefined for those of the policy. */
function becauseOf(ledger: Ledger, slot: number, limit: LimitKind): string | undefined {
  if (limit === "headers" || limit === "robots" || limit === "adaptive") {
    return ledger.slowdowns.get(slot, limit)?.because;
  }
  return undefined;
}

function wording(cause: SlotCause, rule: Rule, because: string | undefined): string {
  const { text } = rule;
  const words: Readonly<Record<LimitKind, string>> = {
    minDelay: `at least ${text.minDelay} between starts`,
    rate: `rate ${text.rate}`,
    window: `window ${text.windows[cause.windowIndex]}`,
    quota: `quota ${text.quota}`,
    concurrency: `concurrency ${text.concurrency}, all in flight`,
    cooldown: `cooling down after ${because}`,
    probe: `one probe is out after ${because}`,
    headers: `the site says ${because}`,
    robots: `robots.txt says ${because}`,
    adaptive: `slower for now, ${because}`,
    pause: "paused",
    queue: "others are ahead",
    reserved: "reserved for one who has waited longer",
    closed: CLOSED,
  };
  return words[cause.limit];
}

/** Why nothing starts any more. */
export const CLOSED = "the limiter is closed";

/** How long it takes, as the end of a sentence. */
export function until(waitMs: number): string {
  if (waitMs === Number.POSITIVE_INFINITY) return " until it is resumed";
  if (waitMs === 0) return ", until an answer comes";
  if (waitMs < 1000) return `, ${Math.ceil(waitMs)} ms to go`;
  if (waitMs < 600_000) return `, ${Math.ceil(waitMs / 100) / 10} s to go`;
  return waitMs < 7_200_000
    ? `, ${Math.ceil(waitMs / 60_000)} min to go`
    : `, ${Math.ceil(waitMs / 360_000) / 10} h to go`;
}
