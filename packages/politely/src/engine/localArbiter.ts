import { Adaptive, learn } from "../core/adaptive.js";
import { type Answer, isBadAnswer } from "../core/answer.js";
import { checkNames } from "../core/checkNames.js";
import { binding, end, giveBack, lapse, readyAt, record, take, unitsSince } from "../core/decide.js";
import type { Incident } from "../core/incident.js";
import { type Ahead, type Cost, type Key, NOTHING, ONE, type Place, ROW, type Taken, type Tell } from "../core/key.js";
import { holdsHear, holdsReadyAt, holdsTake, needHolds } from "../core/limits/holds.js";
import { owedAt } from "../core/limits/rate.js";
import type { Outcome, RecordOptions, ReleaseOptions, Target } from "../types.js";
import { type Arbiter, type Costs, costAt, type KeysOf, type Need, type Stop, type TellAt } from "./arbiter.js";
import type { Engine } from "./engine.js";
import { readCost } from "./options.js";
import { HeldPermit, isReported } from "./permit.js";
import { HAS_GATE, HAS_REST, PROFILE_MASK } from "./slab.js";
import { toUs } from "./systemClock.js";

const { FLIGHT, LAST_US, OWED, PROFILE, SEEN_US, UNITS } = ROW;

/** What a key is held for longer than before is judged by those with deadlines from here on. */
const LATER_US = 1_000_000;

/** The arbiter of one process: decides over its rows, and answers at once. */
export class LocalArbiter implements Arbiter {
  /** What stopped the last request that was asked about. */
  readonly stop: Stop = { index: 0, atUs: 0, slackUs: 0, limit: undefined };
  /** What was last said about a permit before its release. */
  readonly #reported = new WeakMap<HeldPermit, Answer>();

  constructor(readonly engine: Engine) {}

  /** What an outcome says about a permit. One that names no scope speaks of the scope that was reported before, if there was one. */
  answerOf(permit: HeldPermit, outcome: Outcome | undefined): Answer {
    const answer = this.engine.options.readOutcome(outcome, permit.key);
    const reported = this.#reported.get(permit)?.scope;
    return answer.scope !== undefined || reported === undefined ? answer : { ...answer, scope: reported };
  }

  /** Whether a permit was reported with that answer before. */
  isKnown(permit: HeldPermit, answer: Answer): boolean {
    return isReported(this.#reported.get(permit), answer);
  }

  look({ slots }: Need, costs: Costs, nowUs: number, ahead: Ahead, tell?: TellAt): Readonly<Stop> | undefined {
    const { keys } = this.engine;
    const { stop } = this;
    stop.atUs = nowUs;
    for (let index = 0; index < slots.length; index++) {
      const slot = slots[index];
      const key = this.lapse(slot, nowUs);
      const rule = keys.ruleOf(slot);
      const cost = costAt(costs, index);
      const tellHere = tell && ((...told: Parameters<Tell>) => tell(index, ...told));
      const readyUs = readyAt(key, rule, cost, nowUs, ahead, tellHere);
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
    return readyAt(this.lapse(slot, nowUs), this.engine.keys.ruleOf(slot), cost, nowUs, ahead);
  }

  /**
   * The short way, for one unit of a known host with gap and bucket at most: the arithmetic of `core/limits/gap.ts` and `rate.ts` on its row, without the questions
   * whose answers are known. Gives `stop` when it has to wait, null where the composed way decides. A waiter at the head of its lane brings `askedUs`, when it asked, and `atUs`, the
   * instant to decide for; a newcomer brings neither, and the clock is read here.
   */
  takePlain(key: string, slot: number, askedUs?: number, atUs?: number): HeldPermit | Readonly<Stop> | null {
    const { books, keys, slab } = this.engine;
    const { words, halves } = slab.chunkOf(slot);
    const word = slab.wordOf(slot);
    const half = 2 * word;
    const number = askedUs === undefined ? halves[half + PROFILE] : halves[half + PROFILE] & ~HAS_GATE;
    const profile = number > PROFILE_MASK ? undefined : keys.profiles[number];
    if (profile === undefined || !profile.isSimple || profile.era !== keys.era) return null;
    const nowUs = atUs ?? this.engine.nowUs();
    const { gapUs, maxHoldUs, rateCount, ratePerUs } = profile.rule;
    const previousUs = words[word + LAST_US];
    // Starts in flight that have come to nothing are counted as lost first.
    if (halves[half + FLIGHT] !== 0 && previousUs + maxHoldUs <= nowUs) return null;
    const owed = rateCount === 0 ? 0 : owedAt(rateCount, words[word + OWED], words[word + SEEN_US], nowUs) + ratePerUs;
    const excess = owed - profile.owedMost;
    if (previousUs + gapUs > nowUs || excess > 0) {
      const rateUs = excess > 0 ? nowUs + Math.ceil(excess / rateCount) : nowUs;
      this.stop.atUs = Math.max(previousUs + gapUs, rateUs);
      this.stop.slackUs = rateUs <= previousUs + gapUs ? 0 : (profile.owedMost - ratePerUs) / rateCount;
      return this.stop;
    }
    if (rateCount !== 0) {
      words[word + OWED] = owed;
      words[word + SEEN_US] = nowUs;
    }
    words[word + LAST_US] = nowUs;
    halves[half + FLIGHT] += 1;
    const unitsAfter = (halves[half + UNITS] + 1) >>> 0;
    halves[half + UNITS] = unitsAfter;
    const waitedUs = askedUs === undefined ? undefined : nowUs - askedUs;
    books.granted(slot, nowUs, waitedUs ?? 0);
    books.flying += 1;
    keys.granted(nowUs);
    const sinceUs = previousUs === Number.NEGATIVE_INFINITY ? undefined : nowUs - previousUs;
    return new HeldPermit(this.engine.arbiter, key, slot, nowUs, unitsAfter, sinceUs, waitedUs);
  }

  /** Takes all keys of a request that nothing stops. `sharedUs`: the instant of a start that a store has granted, on its timeline. */
  take(need: Need, costs: Costs, askedUs: number, nowUs: number, sharedUs?: number): HeldPermit {
    const { key, slots } = need;
    const { books, events, keys, slab } = this.engine;
    const waitedUs = nowUs - askedUs;
    const taken: Taken[] = [];
    let isHeld = false;
    for (let index = 0; index < slots.length; index++) {
      const own = slab.key(slots[index]);
      taken.push(take(own, keys.ruleOf(slots[index]), costAt(costs, index), nowUs));
      isHeld ||= own.rest?.holds !== undefined;
    }
    const { previousUs, unitsAfter, place, period } = taken[0];
    const sinceUs = previousUs === Number.NEGATIVE_INFINITY ? undefined : nowUs - previousUs;
    const isThin = slots.length === 1 && costs === ONE && place === undefined && period < 0;
    const detail = isThin ? unitsAfter : { need, taken };
    const permit = new HeldPermit(this.engine.arbiter, key, slots[0], nowUs, detail, sinceUs, waitedUs);
    for (let index = 0; index < slots.length; index++) {
      const { place: own } = taken[index];
      if (own !== undefined) own.permit = permit;
      if (!isHeld) continue;
      // It may be the probe after a cooldown, or proof that nobody waits for one any more.
      const { holds } = slab.key(slots[index]).rest ?? {};
      if (holds !== undefined && holdsTake(holds, permit, nowUs))
        events.emit?.({ type: "probe", key, atMs: permit.startedAtMs });
    }
    books.granted(slots[0], nowUs, waitedUs);
    books.flying += 1;
    keys.granted(nowUs);
    const shared = sharedUs === undefined ? undefined : { startedAtMs: sharedUs / 1000 };
    events.emit?.({ type: "grant", key, atMs: nowUs / 1000, waitedMs: waitedUs / 1000, ...shared });
    return permit;
  }

  record(target: Target, outcome: Outcome, options?: RecordOptions): void {
    const { books, events, keys } = this.engine;
    if (outcome === undefined) throw new TypeError("record needs an outcome: how the request ended.");
    const answer = this.engine.options.readOutcome(outcome, this.engine.keys.policy.resolve(target).key);
    const nowUs = this.engine.nowUs();
    if (options !== undefined) checkNames(options, ["startedAtMs"], "options");
    const { startedAtMs = nowUs / 1000 } = options ?? {};
    if (!Number.isFinite(startedAtMs))
      throw new RangeError(`startedAtMs must be a finite number; got ${String(startedAtMs)}.`);
    const startedUs = Math.min(nowUs, toUs(startedAtMs));
    const need = this.engine.need(target, nowUs);
    const { key, slots } = need;
    const permit = new HeldPermit(this.engine.arbiter, key, slots[0], startedUs, { need, taken: [] }, undefined);
    const meant = this.#meantBy(answer, key, need);
    if (answer.kind === "unused") return;
    for (const slot of slots) {
      // Those held too long come first: they are answered by then.
      record(this.lapse(slot, nowUs), keys.ruleOf(slot), ONE, startedUs, nowUs);
    }
    books.granted(slots[0], startedUs, 0);
    events.emit?.({ type: "grant", key, atMs: startedUs / 1000, waitedMs: 0, recorded: true });
    this.#hear(answer, permit, meant, nowUs);
    this.#touch(need);
  }

  reportAnswer(permit: HeldPermit, outcome: Outcome): void | Promise<void> {
    if (permit.isReleased) return;
    const answer = this.answerOf(permit, outcome);
    if (answer.kind === "unused") throw new TypeError('report takes an answer; give "unused" to release.');
    if (outcome === undefined) throw new TypeError("report needs an outcome: how the request was answered.");
    const { need } = permit.grant;
    const meant = this.#meantBy(answer, permit.key, need);
    if (this.isKnown(permit, answer)) return;
    this.#hear(answer, permit, meant, this.engine.nowUs());
    this.#reported.set(permit, answer);
    this.#touch(need);
  }

  releasePermit(
    permit: HeldPermit,
    outcome: Outcome | undefined,
    options: ReleaseOptions | undefined,
  ): void | Promise<void> {
    if (permit.isReleased) return;
    if (options === undefined && this.#releasePlain(permit, outcome)) return;
    const { books, events, keys, slab } = this.engine;
    const answer = this.answerOf(permit, outcome);
    const { need, taken } = permit.grant;
    if (options !== undefined) checkNames(options, ["cost"], "options");
    const costs = options?.cost === undefined ? undefined : readCost(need.scopeNames, options.cost, 0);
    const meant = this.#meantBy(answer, permit.key, need);
    permit.mark = ~permit.mark;
    const nowUs = this.engine.nowUs();
    let isNews = isBadAnswer(answer.kind) || answer.budget !== undefined;
    for (let index = 0; index < taken.length; index++) {
      const slot = need.slots[index];
      const own = taken[index];
      const isOpen = this.#isOpen(slot, need.rowNames[index], own, nowUs);
      isNews ||= !isOpen;
      if (!isOpen) continue;
      const spent = costs === undefined ? own.cost : costAt(costs, index);
      this.#settle(slot, own, answer.kind === "unused" ? undefined : spent, nowUs);
      if (index === 0) books.flying -= 1;
      isNews ||= slab.key(slot).rest?.holds !== undefined || keys.ruleOf(slot).adaptive !== undefined;
    }
    if (isNews && !this.isKnown(permit, answer)) this.#hear(answer, permit, meant, nowUs);
    const { key } = permit;
    events.emit?.({ type: "release", key, atMs: nowUs / 1000, startedAtMs: permit.startedAtMs, outcome: answer.kind });
    this.#touch(need);
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
    const profile = keys.profiles[marks & PROFILE_MASK];
    // A limit that is new to the key is seeded with what was in flight.
    if (profile === undefined || profile.era !== keys.era || profile.rule.adaptive !== undefined) return false;
    if (words[word + LAST_US] + profile.rule.maxHoldUs <= this.engine.nowUs()) return false;
    permit.mark = ~permit.mark;
    halves[2 * word + FLIGHT] -= 1;
    books.flying -= 1;
    return true;
  }

  /** Whether a start still counts as in flight, at a row that is still its own and up to date. One that was held for longer than `maxHold` may not. */
  #isOpen(slot: number, rowName: string, { place, startedUs }: Taken, nowUs: number): boolean {
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
    const { books, keys } = this.engine;
    const { need } = permit.grant;
    const isThrottled = answer.kind === "rate_limited" && this.#reported.get(permit)?.kind !== answer.kind;
    for (let index = 0; index < need.slots.length; index++) {
      // A permit that lapsed may have lost its row, and its key may be forgotten.
      const slot = keys.rowOf(need.rowNames[index], nowUs);
      if (slot === undefined) continue;
      if (index === 0 && isThrottled) books.count(slot, "throttled");
      this.#learn(answer, permit, index, slot, index === meant, nowUs);
    }
  }

  /** Learns from an answer at one key. To the keys it does not speak of it says at most that it was a success, or that their probe is back. */
  #learn(answer: Answer, permit: HeldPermit, index: number, slot: number, isMeant: boolean, nowUs: number): void {
    const { keys, queue, slab } = this.engine;
    const { kind, budget, scope } = answer;
    const rule = keys.ruleOf(slot);
    const isBad = isMeant && isBadAnswer(kind) && rule.enabled;
    const isLesson =
      rule.adaptive !== undefined && kind !== "neutral" && kind !== "unused" && (isMeant || scope === undefined);
    const saysLeft = isMeant && budget !== undefined;
    if (!isBad && !saysLeft && !isLesson && slab.key(slot).rest?.holds?.incident === undefined) return;
    const { startedUs, grant } = permit;
    const taken = grant.taken.at(index);
    // Nothing is known of what was started before a reset.
    const later = taken && startedUs > keys.lostUntilUs ? unitsSince(slab.key(slot), taken) : 0;
    const laterUnits = later < Number.POSITIVE_INFINITY ? later : 0;
    const random = isBad ? this.engine.random() : 0;
    const holds = needHolds(slab.key(slot));
    const beforeUs = holdsReadyAt(slab.key(slot), holds, rule, nowUs);
    const isHit = holdsHear(holds, rule, answer, { who: permit, startedUs, nowUs, isMeant, laterUnits, random });
    if (isHit && holds.incident !== undefined) this.#tellCooldown(permit.key, answer, nowUs, holds.incident);
    if (isLesson) {
      // Only a host and its intents have a latency: what several hosts share has none of its own.
      const scopeName = grant.need.scopeNames[index];
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
  #tellCooldown(key: string, { kind, because }: Answer, nowUs: number, incident: Incident): void {
    if (this.engine.arbiter.storeTellsHolds === true) return;
    const { errorStep, throttleStep, untilUs } = incident;
    const step = Math.max(1, kind === "rate_limited" ? throttleStep : errorStep);
    const atMs = nowUs / 1000;
    this.engine.events.emit?.({ type: "cooldown", key, atMs, untilMs: untilUs / 1000, step, because });
  }

  /** Frees the places of a row that were held for longer than `maxHold`, and counts what else came to nothing. Returns its key. */
  lapse(slot: number, nowUs: number): Key {
    const { keys, slab } = this.engine;
    const key = slab.key(slot);
    keys.loseLoose(key, slot, nowUs);
    if (key.rest?.places?.first === undefined) return key;
    const rule = keys.ruleOf(slot);
    for (let place = lapse(key, rule, nowUs); place; place = lapse(slab.key(slot), rule, nowUs))
      this.#lapsed(slot, place, nowUs);
    return slab.key(slot);
  }

  #lapsed(slot: number, place: Place, nowUs: number): void {
    const { books, events, keys, queue } = this.engine;
    keys.lostUntilUs = Math.max(keys.lostUntilUs, place.startedUs);
    const permit = place.permit as HeldPermit;
    const { need, taken } = permit.grant;
    const index = taken.findIndex((one) => one.place === place);
    if (index === 0) books.lapsed(slot, 1);
    queue.touch(slot);
    // A permit is told of once, by the first of its places that is free again.
    if (taken.some((one) => one.place !== place && one.place?.lapsedUs !== undefined)) return;
    const key = index === 0 ? permit.key : need.scopeNames[index];
    const afterMs = (nowUs - place.startedUs) / 1000;
    const atMs = nowUs / 1000;
    const heldFor = `${Math.round(afterMs) / 1000} s`;
    const message = `a permit was not released in ${heldFor}, its place is free again; release permits, read or cancel bodies, or raise maxHold`;
    events.emit?.({ type: "expire", key, atMs, what: "permit", afterMs });
    events.emit?.({ type: "warn", key, atMs, message });
  }

  #touch({ slots }: KeysOf): void {
    for (let index = 0; index < slots.length; index++) this.engine.queue.touch(slots[index]);
    this.engine.queue.run();
  }

  /** The number of the key that an answer speaks of. */
  #meantBy({ scope }: Answer, key: string, { scopeNames }: KeysOf): number {
    const index = scope === undefined ? 0 : scopeNames.indexOf(scope);
    if (index >= 0) return index;
    // A host that is exempt takes nothing of its scopes, so there is nothing to hold.
    if (scopeNames.length === 1 && this.engine.keys.policy.hostRule(key).exempt) return 0;
    throw new TypeError(`outcome.scope is "${scope}", but the request took only ${scopeNames.join(", ")}.`);
  }
}
