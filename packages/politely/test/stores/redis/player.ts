import type {
  CalendarPeriod,
  LimitOperation,
  Operation,
  Sender,
  SharedRule,
  Start,
  TakeKey,
  TakeOperation,
  TakeReply,
} from "../../../src/shared/operation.js";
import { ruleIdOf } from "../../../src/shared/ruleNumbers.js";
import { placeName } from "../../../src/shared/take.js";
import type { Action, History } from "./history.js";

/** An operation of a history, made ready. */
export interface Played {
  readonly keys: readonly string[];
  readonly operation: Operation;
  /** False for what comes too late to matter: nobody looks at its reply. */
  readonly isHeard: boolean;
}

interface Granted {
  readonly keys: readonly string[];
  readonly operation: TakeOperation;
  readonly start: Start;
  readonly place: string;
  readonly grantedUs: number;
}

/** The last two operations of an asker. */
interface Said {
  readonly last: Played & { readonly atMovedUs: number; isRemembered: boolean };
  readonly before: Played | undefined;
}

const dayUs = 86_400_000_000;
const hourUs = 3_600_000_000;
/** An answer is remembered for a minute. */
const rememberedUs = 50_000_000;

/** Turns the steps of a history into operations: chooses among what was granted and told so far. */
export class Player {
  readonly #rules: readonly SharedRule[];
  readonly #granted: Granted[] = [];
  readonly #told = new Map<string, { turnUs: number; joinedUs: number }>();
  readonly #said = new Map<string, Said>();
  #sequence = 0;
  #movedUs = 0;

  constructor({ rules }: History) {
    this.#rules = rules;
  }

  /** Time has moved, either way. */
  move(stepUs: number): void {
    this.#movedUs += Math.abs(stepUs);
  }

  /** The operation of a step; undefined when there is nothing to do it with. */
  operation(action: Action, nowUs: number): Played | undefined {
    switch (action.kind) {
      case "again":
        return this.#again(action.asker);
      case "late":
        return this.#late(action.asker);
      case "lease": {
        const { kind, act, holder, label, ttlUs } = action;
        const operation = { kind, act, holder, label, ttlUs, epochUs: nowUs };
        return { keys: ["lease"], operation, isHeard: true };
      }
      case "look": {
        const keys = keysOf(action.keys);
        return { keys, operation: { kind: "look", keys: this.#keys(keys, action, nowUs) }, isHeard: true };
      }
      case "settle":
      case "renew":
        return this.#ofStart(action);
      case "take":
      case "record":
      case "leave":
      case "set":
        return this.#say(keysOf(action.keys), this.#ofKeys(action, nowUs));
    }
  }

  /** Hears the reply to a take. */
  heard({ keys, operation }: Played, reply: object): void {
    if (operation.kind === "look" || operation.kind === "lease") return;
    const { starts, stop, nowUs } = reply as TakeReply;
    const said = this.#said.get(operation.asker);
    const isRemembered = operation.kind === "settle" || operation.kind === "record" || starts?.length > 0;
    if (said?.last.operation === operation && isRemembered) said.last.isRemembered = true;
    if (operation.kind !== "take") return;
    for (const [number, start] of starts.entries()) {
      if (operation.asker === "" && operation.sequence < this.#sequence) continue;
      this.#granted.push({ keys, operation, start, place: placeName(operation, number), grantedUs: nowUs });
    }
    if (operation.ticket === "") return;
    const before = starts.length > 0 ? undefined : this.#told.get(operation.ticket);
    if (stop === undefined) this.#told.delete(operation.ticket);
    else this.#told.set(operation.ticket, { turnUs: stop.turnUs, joinedUs: before?.joinedUs ?? nowUs });
  }

  #ofKeys(
    action: Extract<Action, { kind: "take" | "record" | "leave" | "set" }>,
    nowUs: number,
  ): Exclude<LimitOperation, { kind: "look" }> {
    const sender = this.#sender(action.asker);
    if (action.kind === "leave") return { ...sender, kind: "leave", ticket: action.ticket };
    if (action.kind === "set") return { ...sender, kind: "set", pauseUs: action.pauseUs, reset: action.reset };
    const keys = this.#keys(keysOf(action.keys), action, nowUs);
    if (action.kind === "record") {
      const agesUs = action.agesUs.toSorted((one, other) => other - one);
      const counts = action.counts?.slice(0, agesUs.length);
      const units = action.units?.slice(0, agesUs.length).map((each) => keys.map(() => each));
      const groups = { ...(counts === undefined ? {} : { counts }), ...(units === undefined ? {} : { units }) };
      return { ...sender, kind: "record", keys, agesUs, ...groups };
    }
    const { count, horizonUs, ticket, hasMore, leaseUs, maxHoldUs, member } = action;
    const { turnUs, joinedUs } = (action.isTurn ? this.#told.get(ticket) : undefined) ?? { turnUs: 0, joinedUs: 0 };
    const terms = { count, horizonUs, ticket, turnUs, joinedUs, hasMore, leaseUs, maxHoldUs, member };
    return { ...sender, kind: "take", keys, ...terms };
  }

  #ofStart(action: Extract<Action, { kind: "settle" | "renew" }>): Played | undefined {
    if (this.#granted.length === 0) return undefined;
    const { keys, operation, start, place, grantedUs } = this.#granted[action.start % this.#granted.length];
    const sender = this.#sender(action.asker);
    if (action.kind === "renew") {
      const others = action.places.map((pick) => this.#granted[pick % this.#granted.length].place);
      const places = [place, ...others, "x#1#0"];
      const rules = others.length % 2 === 0 ? {} : { ruleIds: operation.keys.map(({ ruleId }) => ruleId) };
      return this.#say(keys, { ...sender, kind: "renew", places, leaseUs: action.leaseUs, ...rules });
    }
    const settled = keys.map((_, index) => {
      const [answer, rate, window, quota, cooling] = action.answers[index];
      const units = { unitsAfter: start.unitsAfter[index], previousUs: start.previousUs[index] };
      const windowUnits = Math.max(0, operation.keys[index].cost.window - window);
      return {
        ruleId: operation.keys[index].ruleId,
        ...units,
        back: { rate, window, quota },
        windowUnits,
        answer,
        ...cooling,
      };
    });
    const { startedUs } = start;
    const { isOver, isUnused, others } = action;
    const terms = { startedUs, grantedUs, place, isOver, isUnused };
    const several = others === 0 ? {} : { unusedAt: this.#instants(keys, start, others) };
    return this.#say(keys, { ...sender, kind: "settle", ...terms, ...several, keys: settled });
  }

  /** The instants of a start and of up to so many before it at these keys, of one take or of several, each with how many there were. */
  #instants(keys: readonly string[], last: Start, others: number): number[] {
    const there = this.#granted.filter((granted) => granted.keys.join() === keys.join()).map(({ start }) => start);
    const end = there.indexOf(last) + 1;
    const counts = new Map<number, number>();
    for (const { startedUs } of there.slice(Math.max(0, end - 1 - others), end))
      counts.set(startedUs, (counts.get(startedUs) ?? 0) + 1);
    return [...counts].flat();
  }

  #sender(asker: string): Sender {
    this.#sequence += 1;
    return { asker, sequence: this.#sequence };
  }

  #say(keys: readonly string[], operation: Exclude<LimitOperation, { kind: "look" }>): Played {
    const played = { keys, operation, isHeard: true };
    const last = { ...played, atMovedUs: this.#movedUs, isRemembered: false };
    this.#said.set(operation.asker, { last, before: this.#said.get(operation.asker)?.last });
    return played;
  }

  #again(asker: string): Played | undefined {
    const last = this.#said.get(asker)?.last;
    return last !== undefined && this.#movedUs - last.atMovedUs < rememberedUs ? last : undefined;
  }

  /** The operation before the last one, if the core can know that it is late: its memory is that of the first key. */
  #late(asker: string): Played | undefined {
    const { last, before } = this.#said.get(asker) ?? {};
    if (last === undefined || before === undefined || asker === "" || !last.isRemembered) return undefined;
    if (this.#movedUs - last.atMovedUs >= rememberedUs || before.keys[0] !== last.keys[0]) return undefined;
    return { ...before, isHeard: false };
  }

  #keys(
    names: readonly string[],
    {
      rules,
      cost,
      slowUs,
      period: known,
    }: Pick<Extract<Action, { kind: "take" }>, "rules" | "cost" | "slowUs" | "period">,
    nowUs: number,
  ): TakeKey[] {
    return names.map((_, index) => {
      // The first policy is the usual one.
      const pick = rules[index] % (2 * this.#rules.length);
      const rule = this.#rules[pick < this.#rules.length ? pick : 0];
      const behindUs = known === "old" ? hourUs : 0;
      const period = rule.quota > 0 && known !== "none" ? periodOf(rule.calendar, nowUs - behindUs) : undefined;
      return { rule, ruleId: ruleIdOf(rule), cost: fitting(cost, rule), slowUs, period };
    });
  }
}

/** A cost never exceeds a limit: policies refuse such. */
function fitting(cost: TakeKey["cost"], { burst, windows, quota, rateCount }: SharedRule): TakeKey["cost"] {
  const counts = windows.filter((_, index) => index % 3 === 0);
  return {
    rate: rateCount > 0 ? Math.min(cost.rate, burst) : cost.rate,
    window: Math.min(cost.window, ...counts),
    quota: quota > 0 ? Math.min(cost.quota, quota) : cost.quota,
  };
}

function periodOf(calendar: string, nowUs: number): CalendarPeriod {
  const lengthUs = calendar.startsWith("day") ? dayUs : hourUs;
  const index = Math.floor(nowUs / lengthUs);
  return { index, fromUs: index * lengthUs, untilUs: (index + 1) * lengthUs };
}

function keysOf(pick: number): readonly string[] {
  const sets = [["a"], ["a"], ["a"], ["b"], ["a", "b"], ["b", "a"], ["c", "a", "b"], ["a", "ü {x}"]];
  return sets[pick % sets.length];
}
