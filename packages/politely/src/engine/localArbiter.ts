import { Adaptive, learn } from "../core/adaptive.js";
import { type Answer, type Heard, isBadAnswer } from "../core/answer.js";
import { binding, end, giveBack, lapse, readyAt, record, take, unitsSince } from "../core/decide.js";
import type { Incident } from "../core/incident.js";
import { type Ahead, type Cost, NOTHING, ONE, type Place, ROW, type Taken, type Tell } from "../core/key.js";
import { holdsHear, holdsTake, needHolds } from "../core/limits/holds.js";
import type { CompiledPolicy } from "../policy/types.js";
import type { Outcome, RecordOptions, ReleaseOptions, Target } from "../types.js";
import { type Arbiter, type Costs, costAt, type Need, type Stop, type TellAt } from "./arbiter.js";
import type { Engine } from "./engine.js";
import { checkNames, readCost } from "./options.js";
import { HeldPermit, isReported, type Part, type PermitOwner, type Reported, reportedOf } from "./permit.js";
import { HAS_GATE, HAS_REST, PROFILE_MASK } from "./slab.js";
import { toUs } from "./systemClock.js";

const { FLIGHT, LAST_US, PROFILE } = ROW;

/** Decides over the rows of this process: who may start, what a start takes, and what becomes of it when its permit comes back. */
export class LocalArbiter implements Arbiter, PermitOwner {
  readonly #stop: { -readonly [Field in keyof Stop]: Stop[Field] } = {
    index: 0,
    atUs: 0,
    slackUs: 0,
    limit: undefined,
  };
  /** What was last said about a permit before its release. */
  readonly #reported = new WeakMap<HeldPermit, Reported>();

  readonly isShared: boolean = false;

  constructor(readonly engine: Engine) {}

  assertOpen(_need: Need): void {
    // Nothing closes the limits of a process.
  }

  isUndecided(_need: Need): boolean {
    return false;
  }

  enterOnce(_need: Need, _costs: Costs): Promise<HeldPermit> | undefined {
    return undefined;
  }

  partOf(policy: CompiledPolicy): CompiledPolicy {
    return policy;
  }

  left(_need: Need, _waiting: number): void {
    // Nobody else has to know.
  }

  /** Whether a permit was reported with that answer before. */
  isKnown(permit: HeldPermit, answer: Answer, outcome: Outcome | undefined): boolean {
    return isReported(this.#reported.get(permit), answer, outcome);
  }

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

  readyAt(slot: number, cost: Cost, nowUs: number, ahead: Ahead): number {
    this.lapse(slot, nowUs);
    return readyAt(this.engine.slab.key(slot), this.engine.keys.ruleOf(slot), cost, nowUs, ahead);
  }

  take(need: Need, costs: Costs, askedUs: number, nowUs: number): HeldPermit {
    const { books, events, keys, slab } = this.engine;
    const { slots, key } = need;
    const waitedUs = nowUs - askedUs;
    const permit = this.#permit(need, costs, nowUs, waitedUs);
    books.granted(slots[0], nowUs, waitedUs);
    books.flying += 1;
    for (const slot of slots) if (slab.hasFlag(slot, HAS_REST)) this.#started(slot, key, permit);
    events.emit?.({ type: "grant", key, atMs: nowUs / 1000, waitedMs: waitedUs / 1000 });
    keys.granted(nowUs);
    return permit;
  }

  #permit({ slots, key, rowNames, scopeNames }: Need, costs: Costs, nowUs: number, waitedUs: number): HeldPermit {
    const { keys, slab } = this.engine;
    const takeAt = (index: number): Taken =>
      take(slab.key(slots[index]), keys.ruleOf(slots[index]), costAt(costs, index), nowUs);
    const first = takeAt(0);
    const { previousUs, unitsAfter } = first;
    const sinceUs = previousUs === Number.NEGATIVE_INFINITY ? undefined : nowUs - previousUs;
    if (slots.length === 1 && costs === ONE && first.place === undefined && first.period < 0) {
      return new HeldPermit(this, key, slots[0], nowUs, unitsAfter, sinceUs, waitedUs);
    }
    const parts: Part[] = slots.map((slot, index) => {
      const taken = index === 0 ? first : takeAt(index);
      return { slot, rowName: rowNames[index], scopeName: scopeNames[index], taken };
    });
    const permit = new HeldPermit(this, key, slots[0], nowUs, parts, sinceUs, waitedUs);
    for (const { taken } of parts) if (taken?.place !== undefined) taken.place.permit = permit;
    return permit;
  }

  /** A start was made at a key that may remember an incident: it is the probe, or proof that nobody waits for one any more. */
  #started(slot: number, key: string, permit: HeldPermit): void {
    const holds = this.engine.slab.key(slot).rest?.holds;
    if (holds !== undefined && holdsTake(holds, permit, permit.startedUs))
      this.engine.events.emit?.({ type: "probe", key, atMs: permit.startedAtMs });
  }

  record(target: Target, outcome: Outcome, options?: RecordOptions): void {
    const { books, events, keys, slab } = this.engine;
    if (outcome === undefined) throw new TypeError("record needs an outcome: how the request ended.");
    const answer = this.engine.options.readOutcome(outcome);
    const nowUs = this.engine.nowUs();
    if (options !== undefined) checkNames(options, ["startedAtMs"], "options");
    const startedUs = readStarted(options?.startedAtMs, nowUs);
    const { key, slots, rowNames, scopeNames } = this.engine.need(target, nowUs);
    const parts: Part[] = slots.map((slot, index) => {
      return { slot, rowName: rowNames[index], scopeName: scopeNames[index], taken: undefined };
    });
    const heldAt = this.#partOfScope(parts, key, answer.scope);
    if (answer.kind === "unused") return;
    for (const slot of slots) {
      // Those held too long come first: they are answered by then.
      this.lapse(slot, nowUs);
      record(slab.key(slot), keys.ruleOf(slot), ONE, startedUs, nowUs);
    }
    books.granted(slots[0], startedUs, 0);
    events.emit?.({ type: "grant", key, atMs: startedUs / 1000, waitedMs: 0, recorded: true });
    this.#hear(answer, parts, { key, startedUs, nowUs, heldAt, permit: undefined });
    this.#touch(parts);
  }

  reportAnswer(permit: HeldPermit, outcome: Outcome): void | Promise<void> {
    if (permit.isReleased) return;
    const answer = this.engine.options.readOutcome(outcome);
    if (answer.kind === "unused") throw new TypeError('report takes an answer; give "unused" to release.');
    if (outcome === undefined) throw new TypeError("report needs an outcome: how the request was answered.");
    const { parts, key, startedUs } = permit;
    const heldAt = this.#partOfScope(parts, key, answer.scope);
    if (isReported(this.#reported.get(permit), answer, outcome)) return;
    this.#hear(answer, parts, { key, startedUs, nowUs: this.engine.nowUs(), heldAt, permit });
    this.#reported.set(permit, reportedOf(answer, outcome));
    this.#touch(parts);
  }

  releasePermit(
    permit: HeldPermit,
    outcome: Outcome | undefined,
    options: ReleaseOptions | undefined,
  ): void | Promise<void> {
    if (permit.isReleased) return;
    if (options === undefined && this.#releasePlain(permit, outcome)) return;
    const { books, events } = this.engine;
    const answer = this.engine.options.readOutcome(outcome);
    const { parts, key, startedUs, startedAtMs } = permit;
    if (options !== undefined) checkNames(options, ["cost"], "options");
    const input = options?.cost;
    const costs = input === undefined ? undefined : readCost(parts.map(nameOf), input, 0);
    const heldAt = this.#partOfScope(parts, key, answer.scope);
    permit.mark = ~permit.mark;
    const nowUs = this.engine.nowUs();
    parts.forEach((part, index) => {
      const { taken } = part;
      if (taken === undefined || !this.#isOpen(part, taken, nowUs)) return;
      const spent = answer.kind === "unused" ? undefined : costs ? costAt(costs, index) : taken.cost;
      this.#settle(part.slot, taken, spent, nowUs);
      if (index === 0) books.flying -= 1;
    });
    if (!isReported(this.#reported.get(permit), answer, outcome)) {
      this.#hear(answer, parts, { key, startedUs, nowUs, heldAt, permit });
    }
    events.emit?.({ type: "release", key, atMs: nowUs / 1000, startedAtMs, outcome: answer.kind });
    this.#touch(parts);
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
    if (place?.isLapsed === true) return false;
    const isOwn = place !== undefined || startedUs > keys.lostUntilUs;
    if (isOwn) keys.bring(slot, rowName, nowUs);
    else if (keys.rowOf(rowName, nowUs) !== slot) return false;
    this.lapse(slot, nowUs);
    if (place !== undefined) return !place.isLapsed;
    if (slab.half(slot, FLIGHT) === 0) return false;
    return isOwn || (startedUs >= keys.era.fromUs && startedUs + keys.ruleOf(slot).maxHoldUs > nowUs);
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

  /** Tells the keys of a start what was answered. */
  #hear(answer: Answer, parts: readonly Part[], about: Start): void {
    const { books, keys, slab } = this.engine;
    const { startedUs, nowUs, heldAt, permit } = about;
    const { kind } = answer;
    const isThrottled = kind === "rate_limited" && (permit && this.#reported.get(permit))?.kind !== kind;
    const isOwn = startedUs > keys.lostUntilUs;
    parts.forEach(({ slot: startedAt, rowName, scopeName, taken }, index) => {
      const isHeld = index === heldAt;
      // A permit that lapsed may have lost its row: the key is found again by name, and made where it has to be held.
      let slot = isOwn ? startedAt : keys.rowOf(rowName, nowUs);
      if (slot === undefined && isHeld && isBadAnswer(kind)) slot = keys.remake(rowName, nowUs);
      if (slot === undefined) return;
      if (index === 0 && isThrottled) books.count(slot, "throttled");
      // Nothing is known of what was started before a reset.
      const later = isOwn && taken !== undefined ? unitsSince(slab.key(slot), taken) : 0;
      this.#learn(answer, about, slot, scopeName, isHeld, later < Number.POSITIVE_INFINITY ? later : 0);
    });
  }

  /**
   * Learns from an answer at one key, where `laterUnits` were started after that request. To the keys it does not speak of (`isHeld` is false) it says at most that it
   * was a success, or that their probe is back.
   */
  #learn(said: Answer, about: Start, slot: number, scopeName: string, isHeld: boolean, laterUnits: number): void {
    const { keys, queue, slab } = this.engine;
    const { kind, budget, scope } = said;
    const rule = keys.ruleOf(slot);
    const isBad = isHeld && isBadAnswer(kind) && rule.enabled;
    const isLesson = rule.adaptive !== undefined && kind !== "neutral" && kind !== "unused";
    const saysLeft = isHeld && budget !== undefined;
    if (!isBad && !saysLeft && !isLesson && slab.key(slot).rest?.holds?.incident === undefined) return;
    const { key, startedUs, nowUs, permit } = about;
    const answer: Heard = { ...said, startedUs, nowUs };
    const holds = needHolds(slab.key(slot));
    const { headers } = holds;
    const random = isBad ? this.engine.random() : 0;
    const at = { who: permit, startedUs, nowUs, isMeant: isHeld, laterUnits, random };
    const isHit = holdsHear(holds, rule, said, at);
    if (isHit && holds.incident !== undefined) this.tellCooldown(key, said, nowUs, holds.incident);
    let isSlower = false;
    if (isLesson && (scope === undefined || isHeld)) {
      // Only a host and its intents have a latency: what several hosts share has none of its own.
      const isOneSite = scopeName === "host" || scopeName === "intent";
      const measuredUs = permit === undefined ? undefined : nowUs - startedUs;
      const latencyUs = isOneSite ? (answer.latencyUs ?? measuredUs) : undefined;
      holds.adaptive ??= new Adaptive();
      const { slowedUs } = holds.adaptive;
      learn(rule.adaptive, holds.adaptive, { ...answer, latencyUs });
      isSlower = holds.adaptive.gapUs > 0 && holds.adaptive.slowedUs > slowedUs;
    }
    const isExhausted = holds.headers !== headers && holds.headers !== undefined && holds.headers.holdUntilUs > nowUs;
    if (isHit || isSlower || isExhausted) queue.judgeDeadlines(slot);
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
    if (permit.parts.some(({ taken }) => taken?.place !== place && taken?.place?.isLapsed === true)) return;
    const key = index === 0 ? permit.key : permit.parts[index].scopeName;
    const afterMs = (nowUs - place.startedUs) / 1000;
    const atMs = nowUs / 1000;
    const heldFor = `${Math.round(afterMs) / 1000} s`;
    const message = `a permit was not released in ${heldFor}, its place is free again; release permits, read or cancel bodies, or raise maxHold`;
    events.emit?.({ type: "expire", key, atMs, what: "permit", afterMs });
    events.emit?.({ type: "warn", key, atMs, message });
  }

  #touch(parts: readonly Part[]): void {
    for (const { slot } of parts) this.engine.queue.touch(slot);
    this.engine.queue.run();
  }

  #partOfScope(parts: readonly Part[], key: string, scope: string | undefined): number {
    const index = scope === undefined ? 0 : parts.findIndex(({ scopeName }) => scopeName === scope);
    if (index >= 0) return index;
    // A host that is exempt takes nothing of its scopes, so there is nothing to hold.
    if (parts.length === 1 && this.engine.keys.policy.hostRule(key).exempt) return 0;
    const names = parts.map(nameOf).join(", ");
    throw new TypeError(`outcome.scope is "${scope}", but the request took only ${names}.`);
  }
}

/** A start that was answered. */
interface Start {
  readonly key: string;
  readonly startedUs: number;
  /** When the answer came. */
  readonly nowUs: number;
  /** The number of the key that the answer speaks of. */
  readonly heldAt: number;
  /** Undefined for a start that was recorded. */
  readonly permit: HeldPermit | undefined;
}

function nameOf({ scopeName }: Part): string {
  return scopeName;
}

function readStarted(startedAtMs: number | undefined, nowUs: number): number {
  if (startedAtMs === undefined) return nowUs;
  if (Number.isFinite(startedAtMs)) return Math.min(nowUs, toUs(startedAtMs));
  throw new RangeError(`startedAtMs must be a finite number; got ${String(startedAtMs)}.`);
}
