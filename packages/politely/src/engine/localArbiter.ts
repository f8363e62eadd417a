import { Adaptive, learn } from "../core/adaptive.js";
import { type Answer, isBadAnswer } from "../core/answer.js";
import { binding, end, giveBack, lapse, readyAt, record, take, unitsSince } from "../core/decide.js";
import type { Incident } from "../core/incident.js";
import { type Ahead, type Cost, NOTHING, ONE, type Place, ROW, type Taken, type Tell } from "../core/key.js";
import { type HeardAt, holdsHear, holdsReadyAt, holdsTake, needHolds } from "../core/limits/holds.js";
import type { CompiledPolicy } from "../policy/types.js";
import type { Outcome, RecordOptions, ReleaseOptions, Target } from "../types.js";
import { type Costs, costAt, type Need, type Stop, type TellAt } from "./arbiter.js";
import type { Engine } from "./engine.js";
import { checkNames, readCost } from "./options.js";
import { HeldPermit, isReported, type Part, type PermitOwner } from "./permit.js";
import { HAS_GATE, HAS_REST, PROFILE_MASK } from "./slab.js";
import { toUs } from "./systemClock.js";

const { FLIGHT, LAST_US, PROFILE } = ROW;

/** What a key is held for longer than before is judged by those with deadlines from here on. */
const LATER_US = 1_000_000;

/**
 * Says who may start, what a start takes, and what becomes of it when its permit comes back. The queue asks nobody else.
 *
 * It decides over the rows of this process and answers at once. One that shares its limits with others answers by what a store has granted.
 * All keys of a request are taken in one step or none is, and a refusal changes nothing.
 */
export class LocalArbiter implements PermitOwner {
  /** Others share the limits. */
  readonly isShared: boolean = false;

  /** Lanes wait for nothing but their own turn now. */
  get keepsLanesApart(): boolean {
    return false;
  }

  readonly #stop: Stop = { index: 0, atUs: 0, slackUs: 0, limit: undefined };
  /** What was last said about a permit before its release. */
  readonly #reported = new WeakMap<HeldPermit, Answer>();

  constructor(readonly engine: Engine) {}

  /** Throws what a request is refused with before it waits, if it is. */
  assertOpen(_need: Need): void {
    // Nothing closes the limits of a process.
  }

  /** Nobody knows yet whether those who wait in a lane have to. */
  isUndecided(_need: Need): boolean {
    return false;
  }

  /** Asks once for somebody who does not wait. Rejects with `DeadlineError`; undefined where the answer is known at once. */
  enterOnce(_need: Need, _costs: Costs, _signal: AbortSignal | undefined): Promise<HeldPermit> | undefined {
    return undefined;
  }

  /** What of a policy is in force for this process. */
  partOf(policy: CompiledPolicy): CompiledPolicy {
    return policy;
  }

  /** Somebody does not wait in a lane any more; so many still do. */
  left(_need: Need, _waiting: number): void {
    // Nobody else has to know.
  }

  /** What an outcome says about a permit. One that names no scope speaks of the scope that was reported before, if there was one. */
  answerOf(permit: HeldPermit, outcome: Outcome | undefined): Answer {
    const answer = this.engine.options.readOutcome(outcome);
    const reported = this.#reported.get(permit)?.scope;
    return answer.scope !== undefined || reported === undefined ? answer : { ...answer, scope: reported };
  }

  /** Whether a permit was reported with that answer before. */
  isKnown(permit: HeldPermit, answer: Answer): boolean {
    return isReported(this.#reported.get(permit), answer);
  }

  /** What stops a request that comes after those `ahead`; undefined: nothing does. The answer is valid until the next question. */
  look({ slots }: Need, costs: Costs, nowUs: number, ahead: Ahead, tell?: TellAt): Readonly<Stop> | undefined {
    const { keys, slab } = this.engine;
    const stop = this.#stop;
    stop.atUs = nowUs;
    for (let index = 0; index < slots.length; index++) {
      const slot = slots[index];
      this.lapse(slot, nowUs);
      const rule = keys.ruleOf(slot);
      const cost = costAt(costs, index);
      const tellHere = tell && ((...told: Parameters<Tell>) => tell(index, ...told));
      const readyUs = readyAt(slab.key(slot), rule, cost, nowUs, ahead, tellHere);
      if (readyUs <= stop.atUs) continue;
      stop.index = index;
      stop.atUs = readyUs;
      stop.limit = binding.limit;
      stop.slackUs = binding.limit === "rate" ? ((rule.burst - cost.rate) * rule.ratePerUs) / rule.rateCount : 0;
    }
    return stop.atUs > nowUs ? stop : undefined;
  }

  /** When one key allows a start, after those `ahead`. */
  readyAt(slot: number, cost: Cost, nowUs: number, ahead: Ahead): number {
    this.lapse(slot, nowUs);
    return readyAt(this.engine.slab.key(slot), this.engine.keys.ruleOf(slot), cost, nowUs, ahead);
  }

  /** Takes all keys of a request that nothing stops. `sharedUs`: the instant of a start that a store has granted, on its timeline. */
  take(need: Need, costs: Costs, askedUs: number, nowUs: number, sharedUs?: number): HeldPermit {
    const { key, slots, rowNames, scopeNames } = need;
    const { books, events, keys, slab } = this.engine;
    const waitedUs = nowUs - askedUs;
    const parts = slots.map((slot, index) => {
      const taken = take(slab.key(slot), keys.ruleOf(slot), costAt(costs, index), nowUs);
      return { slot, rowName: rowNames[index], scopeName: scopeNames[index], taken };
    });
    const { previousUs, unitsAfter, place, period } = parts[0].taken;
    const sinceUs = previousUs === Number.NEGATIVE_INFINITY ? undefined : nowUs - previousUs;
    const isThin = slots.length === 1 && costs === ONE && place === undefined && period < 0;
    const permit = new HeldPermit(this, key, slots[0], nowUs, isThin ? unitsAfter : parts, sinceUs, waitedUs);
    for (const { slot, taken } of parts) {
      if (taken.place !== undefined) taken.place.permit = permit;
      // It may be the probe after a cooldown, or proof that nobody waits for one any more.
      const holds = slab.key(slot).rest?.holds;
      if (holds !== undefined && holdsTake(holds, permit, nowUs))
        events.emit?.({ type: "probe", key, atMs: permit.startedAtMs });
    }
    books.granted(slots[0], nowUs, waitedUs);
    this.engine.keys.granted(nowUs);
    books.flying += 1;
    const shared = sharedUs === undefined ? {} : { startedAtMs: sharedUs / 1000 };
    events.emit?.({ type: "grant", key, atMs: nowUs / 1000, waitedMs: waitedUs / 1000, ...shared });
    return permit;
  }

  record(target: Target, outcome: Outcome, options?: RecordOptions): void {
    const { books, events, keys, slab } = this.engine;
    if (outcome === undefined) throw new TypeError("record needs an outcome: how the request ended.");
    const answer = this.engine.options.readOutcome(outcome);
    const nowUs = this.engine.nowUs();
    if (options !== undefined) checkNames(options, ["startedAtMs"], "options");
    const { startedAtMs = nowUs / 1000 } = options ?? {};
    if (!Number.isFinite(startedAtMs))
      throw new RangeError(`startedAtMs must be a finite number; got ${String(startedAtMs)}.`);
    const startedUs = Math.min(nowUs, toUs(startedAtMs));
    const { key, slots, rowNames, scopeNames } = this.engine.need(target, nowUs);
    const parts = slots.map((slot, index): Part => {
      return { slot, rowName: rowNames[index], scopeName: scopeNames[index], taken: undefined };
    });
    const permit = new HeldPermit(this, key, slots[0], startedUs, parts, undefined);
    const meant = this.#meantBy(answer, permit);
    if (answer.kind === "unused") return;
    for (const slot of slots) {
      // Those held too long come first: they are answered by then.
      this.lapse(slot, nowUs);
      record(slab.key(slot), keys.ruleOf(slot), ONE, startedUs, nowUs);
    }
    books.granted(slots[0], startedUs, 0);
    events.emit?.({ type: "grant", key, atMs: startedUs / 1000, waitedMs: 0, recorded: true });
    this.#hear(answer, permit, meant, nowUs);
    this.#touch(permit);
  }

  reportAnswer(permit: HeldPermit, outcome: Outcome): void | Promise<void> {
    if (permit.isReleased) return;
    const answer = this.engine.options.readOutcome(outcome);
    if (answer.kind === "unused") throw new TypeError('report takes an answer; give "unused" to release.');
    if (outcome === undefined) throw new TypeError("report needs an outcome: how the request was answered.");
    const meant = this.#meantBy(answer, permit);
    if (this.isKnown(permit, answer)) return;
    this.#hear(answer, permit, meant, this.engine.nowUs());
    this.#reported.set(permit, answer);
    this.#touch(permit);
  }

  releasePermit(
    permit: HeldPermit,
    outcome: Outcome | undefined,
    options: ReleaseOptions | undefined,
  ): void | Promise<void> {
    if (permit.isReleased) return;
    if (options === undefined && this.#releasePlain(permit, outcome)) return;
    const { books, events } = this.engine;
    const answer = this.answerOf(permit, outcome);
    const { parts, key, startedAtMs } = permit;
    if (options !== undefined) checkNames(options, ["cost"], "options");
    const input = options?.cost;
    const costs = input === undefined ? undefined : readCost(parts.map(nameOf), input, 0);
    const meant = this.#meantBy(answer, permit);
    permit.mark = ~permit.mark;
    const nowUs = this.engine.nowUs();
    parts.forEach((part, index) => {
      const { taken } = part;
      if (taken === undefined || !this.#isOpen(part, taken, nowUs)) return;
      const spent = answer.kind === "unused" ? undefined : costs ? costAt(costs, index) : taken.cost;
      this.#settle(part.slot, taken, spent, nowUs);
      if (index === 0) books.flying -= 1;
    });
    if (!this.isKnown(permit, answer)) this.#hear(answer, permit, meant, nowUs);
    events.emit?.({ type: "release", key, atMs: nowUs / 1000, startedAtMs, outcome: answer.kind });
    this.#touch(permit);
  }

  /** Takes back a permit whose answer can change nothing: nobody waits, listens or learns there, and nothing is held. */
  #releasePlain(permit: HeldPermit, outcome: Outcome | undefined): boolean {
    const { books, events, isWatched, keys, slab } = this.engine;
    if (typeof permit.detail !== "number" || (outcome !== undefined && outcome !== "success")) return false;
    if (isWatched || events.emit !== undefined) return false;
    const { mark: slot, startedUs } = permit;
    const { words, halves } = slab.chunkOf(slot);
    const word = slab.wordOf(slot);
    const marks = halves[2 * word + PROFILE];
    // A start later than any that was lost has not lost its row.
    if (startedUs <= keys.lostUntilUs || (marks & (HAS_REST | HAS_GATE)) !== 0) return false;
    const rule = keys.profiles[marks & PROFILE_MASK]?.rule;
    if (rule === undefined || rule.adaptive !== undefined) return false;
    if (words[word + LAST_US] + rule.maxHoldUs <= this.engine.nowUs()) return false;
    permit.mark = ~permit.mark;
    halves[2 * word + FLIGHT] -= 1;
    books.flying -= 1;
    return true;
  }

  /** Whether a start still counts as in flight, at a row that is still its own and up to date. One that was held for longer than `maxHold` may not. */
  #isOpen({ slot, rowName }: Part, { place, startedUs }: Taken, nowUs: number): boolean {
    const { keys, slab } = this.engine;
    if (place?.lapsedUs !== undefined || keys.rowOf(rowName, nowUs) !== slot) return false;
    this.lapse(slot, nowUs);
    if (place !== undefined) return place.lapsedUs === undefined;
    const isOwn = startedUs > keys.lostUntilUs;
    const isRecent = startedUs + keys.ruleOf(slot).maxHoldUs > nowUs;
    return slab.half(slot, FLIGHT) > 0 && (isOwn || isRecent);
  }

  /** Frees one place, giving back what was not used; `spent` is undefined for a request that was never sent. */
  #settle(slot: number, taken: Taken, spent: Cost | undefined, nowUs: number): void {
    const key = this.engine.slab.key(slot);
    const rule = this.engine.keys.ruleOf(slot);
    const { cost, place } = taken;
    if (spent !== cost) {
      const { rate, window, quota } = spent ?? NOTHING;
      const unused = { rate: cost.rate - rate, window: cost.window - window, quota: cost.quota - quota };
      giveBack(key, rule, taken, unused, nowUs, spent === undefined);
    }
    end(key, rule, place, nowUs, spent?.window);
  }

  /** Tells the keys of a start what was answered. `meant` is the number of the key that the answer speaks of. */
  #hear(answer: Answer, permit: HeldPermit, meant: number, nowUs: number): void {
    const { books, keys, slab } = this.engine;
    const { key, startedUs } = permit;
    const { kind } = answer;
    const isThrottled = kind === "rate_limited" && this.#reported.get(permit)?.kind !== kind;
    permit.parts.forEach((part, index) => {
      const { rowName, taken } = part;
      // A permit that lapsed may have lost its row, and its key may be forgotten.
      const slot = keys.rowOf(rowName, nowUs);
      if (slot === undefined) return;
      if (index === 0 && isThrottled) books.count(slot, "throttled");
      // Nothing is known of what was started before a reset.
      const later = taken && startedUs > keys.lostUntilUs ? unitsSince(slab.key(slot), taken) : 0;
      const laterUnits = later < Number.POSITIVE_INFINITY ? later : 0;
      this.#learn(answer, key, part, slot, { who: permit, startedUs, nowUs, isMeant: index === meant, laterUnits });
    });
  }

  /** Learns from an answer at one key. To the keys it does not speak of it says at most that it was a success, or that their probe is back. */
  #learn(answer: Answer, key: string, { scopeName, taken }: Part, slot: number, at: Omit<HeardAt, "random">): void {
    const { keys, queue, slab } = this.engine;
    const { kind, budget, scope } = answer;
    const { isMeant, startedUs, nowUs } = at;
    const rule = keys.ruleOf(slot);
    const isBad = isMeant && isBadAnswer(kind) && rule.enabled;
    const isLesson =
      rule.adaptive !== undefined && kind !== "neutral" && kind !== "unused" && (isMeant || scope === undefined);
    const saysLeft = isMeant && budget !== undefined;
    if (!isBad && !saysLeft && !isLesson && slab.key(slot).rest?.holds?.incident === undefined) return;
    const random = isBad ? this.engine.random() : 0;
    const holds = needHolds(slab.key(slot));
    const beforeUs = holdsReadyAt(slab.key(slot), holds, rule, nowUs);
    const isHit = holdsHear(holds, rule, answer, { ...at, random });
    if (isHit && holds.incident !== undefined) this.tellCooldown(key, answer, nowUs, holds.incident);
    if (isLesson) {
      // Only a host and its intents have a latency: what several hosts share has none of its own.
      const isOneSite = scopeName === "host" || scopeName === "intent";
      const measuredUs = taken && nowUs - startedUs;
      const latencyUs = isOneSite ? (answer.latencyUs ?? measuredUs) : undefined;
      holds.adaptive ??= new Adaptive();
      learn(rule.adaptive, holds.adaptive, { ...answer, startedUs, nowUs, latencyUs });
    }
    // A gap that grew a little makes hardly anybody late; each finds out at its deadline.
    const isLonger = holdsReadyAt(slab.key(slot), holds, rule, nowUs) > Math.max(beforeUs, nowUs) + LATER_US;
    if (isHit || isLonger) queue.judgeDeadlines(slot);
  }

  /** Says that an answer has begun or lengthened a hold. */
  tellCooldown(
    key: string,
    { kind, because }: Answer,
    nowUs: number,
    { errorStep, throttleStep, untilUs }: Incident,
  ): void {
    const step = Math.max(1, kind === "rate_limited" ? throttleStep : errorStep);
    const atMs = nowUs / 1000;
    this.engine.events.emit?.({ type: "cooldown", key, atMs, untilMs: untilUs / 1000, step, because });
  }

  /** Frees the places of a row that were held for longer than `maxHold`, and counts what else came to nothing. */
  lapse(slot: number, nowUs: number): void {
    const { keys, slab } = this.engine;
    keys.loseLoose(slot, nowUs);
    if (!slab.hasFlag(slot, HAS_REST)) return;
    const rule = keys.ruleOf(slot);
    for (let place = lapse(slab.key(slot), rule, nowUs); place; place = lapse(slab.key(slot), rule, nowUs)) {
      this.#lapsed(slot, place, nowUs);
    }
  }

  #lapsed(slot: number, place: Place, nowUs: number): void {
    const { books, events, keys, queue } = this.engine;
    keys.lostUntilUs = Math.max(keys.lostUntilUs, place.startedUs);
    const permit = place.permit as HeldPermit;
    const index = permit.parts.findIndex(({ taken }) => taken?.place === place);
    if (index === 0) books.lapsed(slot, 1);
    queue.touch(slot);
    // A permit is told of once, by the first of its places that is free again.
    if (permit.parts.some(({ taken }) => taken?.place !== place && taken?.place?.lapsedUs !== undefined)) return;
    const key = index === 0 ? permit.key : permit.parts[index].scopeName;
    const afterMs = (nowUs - place.startedUs) / 1000;
    const atMs = nowUs / 1000;
    const heldFor = `${Math.round(afterMs) / 1000} s`;
    const message = `a permit was not released in ${heldFor}, its place is free again; release permits, read or cancel bodies, or raise maxHold`;
    events.emit?.({ type: "expire", key, atMs, what: "permit", afterMs });
    events.emit?.({ type: "warn", key, atMs, message });
  }

  #touch({ parts }: HeldPermit): void {
    for (const { slot } of parts) this.engine.queue.touch(slot);
    this.engine.queue.run();
  }

  /** The number of the key that an answer speaks of. */
  #meantBy({ scope }: Answer, { key, parts }: HeldPermit): number {
    const index = scope === undefined ? 0 : parts.findIndex(({ scopeName }) => scopeName === scope);
    if (index >= 0) return index;
    // A host that is exempt takes nothing of its scopes, so there is nothing to hold.
    if (parts.length === 1 && this.engine.keys.policy.hostRule(key).exempt) return 0;
    const names = parts.map(nameOf).join(", ");
    throw new TypeError(`outcome.scope is "${scope}", but the request took only ${names}.`);
  }
}

function nameOf({ scopeName }: Part): string {
  return scopeName;
}
