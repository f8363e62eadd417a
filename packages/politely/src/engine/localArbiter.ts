import { Adaptive, learn } from "../core/adaptive.js";
import { type Answer, type Heard, isBadAnswer } from "../core/answer.js";
import { binding, end, giveBack, lapse, readyAt, record, take, unitsSince } from "../core/decide.js";
import { headroomAfter } from "../core/headroom.js";
import { afterBadAnswer, afterSuccess } from "../core/incident.js";
import { type Ahead, type Cost, type Holds, NOTHING, ONE, type Place, ROW, type Tell } from "../core/key.js";
import { needHolds } from "../core/limits/holds.js";
import type { AdaptiveRule } from "../core/rule.js";
import type { Outcome, RecordOptions, ReleaseOptions, Target } from "../types.js";
import { type Arbiter, type Costs, costAt, HOST_ONLY, type Need, type Stop, type TellAt } from "./arbiter.js";
import { readCost } from "./cost.js";
import type { Engine } from "./engine.js";
import { checkNames } from "./knownNames.js";
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

  constructor(readonly engine: Engine) {}

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
    const first = this.#part(slots[0], rowNames[0], costAt(costs, 0), nowUs);
    const { previousUs, unitsAfter } = first;
    const sinceUs = previousUs === Number.NEGATIVE_INFINITY ? undefined : nowUs - previousUs;
    if (slots.length === 1 && costs === ONE && first.place === undefined && first.period < 0) {
      return new HeldPermit(this, key, slots[0], nowUs, unitsAfter, sinceUs, waitedUs);
    }
    const parts = [first];
    for (let index = 1; index < slots.length; index++) {
      parts.push(this.#part(slots[index], rowNames[index], costAt(costs, index), nowUs));
    }
    const permit = new HeldPermit(this, key, slots[0], nowUs, { parts, scopeNames }, sinceUs, waitedUs);
    for (const { place } of parts) if (place !== undefined) place.permit = permit;
    return permit;
  }

  #part(slot: number, rowName: string, cost: Cost, nowUs: number): Part {
    const { previousUs, unitsAfter, place, period } = take(
      this.engine.slab.key(slot),
      this.engine.keys.ruleOf(slot),
      cost,
      nowUs,
    );
    return { slot, rowName, startedUs: nowUs, previousUs, unitsAfter, cost, place, period };
  }

  /** A start was made at a key that may remember an incident: it is the probe, or proof that nobody waits for one any more. */
  #started(slot: number, key: string, permit: HeldPermit): void {
    const holds = this.engine.slab.key(slot).rest?.holds;
    const incident = holds?.incident;
    if (holds === undefined || incident === undefined || incident.probe === "done") return;
    const isProbe = incident.probe === "due";
    holds.probe = isProbe ? permit : undefined;
    holds.incident = { ...incident, probe: isProbe ? "out" : "done", probeAtUs: permit.startedUs };
    if (isProbe) this.engine.events.emit?.({ type: "probe", key, atMs: permit.startedAtMs });
  }

  record(target: Target, outcome: Outcome, options?: RecordOptions): void {
    const { books, events, keys, queue, slab } = this.engine;
    if (outcome === undefined) throw new TypeError("record needs an outcome: how the request ended.");
    const answer = this.engine.options.readOutcome(outcome);
    const nowUs = this.engine.nowUs();
    if (options !== undefined) checkNames(options, ["startedAtMs"], "options");
    const startedUs = readStarted(options?.startedAtMs, nowUs);
    const need = this.engine.need(target, nowUs);
    const heldAt = this.#partOfScope(need, answer.scope);
    if (answer.kind === "unused") return;
    const { key, slots, scopeNames } = need;
    for (const slot of slots) {
      // Those held too long come first: they are answered by then.
      this.lapse(slot, nowUs);
      record(slab.key(slot), keys.ruleOf(slot), ONE, startedUs, nowUs);
    }
    books.granted(slots[0], startedUs, 0);
    if (answer.kind === "rate_limited") books.count(slots[0], "throttled");
    events.emit?.({ type: "grant", key, atMs: startedUs / 1000, waitedMs: 0, recorded: true });
    slots.forEach((slot, index) => {
      const own = { slot, scopeName: scopeNames[index], isHeld: index === heldAt, permit: undefined, laterUnits: 0 };
      this.#learn(answer, { ...own, key, startedUs, nowUs });
      queue.touch(slot);
    });
    queue.run();
  }

  reportAnswer(permit: HeldPermit, outcome: Outcome): void {
    if (permit.isReleased) return;
    const answer = this.engine.options.readOutcome(outcome);
    if (answer.kind === "unused") throw new TypeError('report takes an answer; give "unused" to release.');
    if (outcome === undefined) throw new TypeError("report needs an outcome: how the request was answered.");
    const heldAt = this.#partOfScope(permit, answer.scope);
    if (isReported(this.#reported.get(permit), answer, outcome)) return;
    this.#hear(answer, permit, heldAt, this.engine.nowUs());
    this.#reported.set(permit, reportedOf(answer, outcome));
    this.#touch(permit);
  }

  releasePermit(permit: HeldPermit, outcome: Outcome | undefined, options: ReleaseOptions | undefined): void {
    if (permit.isReleased) return;
    if (options === undefined && this.#releasePlain(permit, outcome)) return;
    const { books, events, keys } = this.engine;
    const answer = this.engine.options.readOutcome(outcome);
    const { parts, scopeNames, key, startedAtMs } = permit;
    if (options !== undefined) checkNames(options, ["cost"], "options");
    const costs = options?.cost === undefined ? undefined : readCost(scopeNames, options.cost, 0);
    const heldAt = this.#partOfScope(permit, answer.scope);
    permit.mark = ~permit.mark;
    keys.wasGivenBack = true;
    const nowUs = this.engine.nowUs();
    parts.forEach((part, index) => {
      if (!this.#isOpen(part, nowUs)) return;
      this.#settle(part, answer.kind === "unused" ? undefined : costs ? costAt(costs, index) : part.cost, nowUs);
      if (index === 0) books.flying -= 1;
    });
    if (!isReported(this.#reported.get(permit), answer, outcome)) this.#hear(answer, permit, heldAt, nowUs);
    events.emit?.({ type: "release", key, atMs: nowUs / 1000, startedAtMs, outcome: answer.kind });
    this.#touch(permit);
    this.engine.onQuiet?.();
  }

  /** Takes back a permit whose answer can change nothing: nobody waits, listens or learns there, and nothing is held. */
  #releasePlain(permit: HeldPermit, outcome: Outcome | undefined): boolean {
    const { books, events, keys, slab, onQuiet } = this.engine;
    if (typeof permit.detail !== "number" || (outcome !== undefined && outcome !== "success")) return false;
    if (onQuiet !== undefined || events.emit !== undefined) return false;
    const { slot, startedUs } = permit;
    const { words, halves } = slab.chunkOf(slot);
    const word = slab.wordOf(slot);
    const marks = halves[2 * word + PROFILE];
    // A start later than any that was lost has not lost its row.
    if (startedUs <= keys.lostUntilUs || (marks & (HAS_REST | HAS_GATE)) !== 0) return false;
    const rule = keys.profiles[marks & PROFILE_MASK]?.rule;
    if (rule === undefined || rule.adaptive !== undefined) return false;
    if (words[word + LAST_US] + rule.maxHoldUs <= this.engine.nowUs()) return false;
    permit.mark = ~permit.mark;
    keys.wasGivenBack = true;
    halves[2 * word + FLIGHT] -= 1;
    books.flying -= 1;
    return true;
  }

  /** Whether a start still counts as in flight, at a row that is still its own and up to date. One that was held for longer than `maxHold` may not. */
  #isOpen({ place, slot, rowName, startedUs }: Part, nowUs: number): boolean {
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
  #settle(part: Part, spent: Cost | undefined, nowUs: number): void {
    const key = this.engine.slab.key(part.slot);
    const rule = this.engine.keys.ruleOf(part.slot);
    const { cost, place } = part;
    if (spent !== cost) {
      const { rate, window, quota } = spent ?? NOTHING;
      const unused = { rate: cost.rate - rate, window: cost.window - window, quota: cost.quota - quota };
      giveBack(key, rule, part, unused, nowUs, spent === undefined);
    }
    end(key, rule, place, nowUs, spent?.window);
  }

  /** Tells the keys of a permit what was answered. */
  #hear(answer: Answer, permit: HeldPermit, heldAt: number, nowUs: number): void {
    const { books, keys, slab } = this.engine;
    const { key, startedUs, scopeNames } = permit;
    const isThrottled = answer.kind === "rate_limited" && this.#reported.get(permit)?.kind !== answer.kind;
    permit.parts.forEach((part, index) => {
      const isHeld = index === heldAt;
      const isOwn = startedUs > keys.lostUntilUs;
      // A permit that lapsed may have lost its row: the key is found again by name, and made where it has to be held.
      let slot = isOwn ? part.slot : keys.rowOf(part.rowName, nowUs);
      if (slot === undefined && isHeld && isBadAnswer(answer.kind)) slot = keys.remake(part.rowName, nowUs);
      if (slot === undefined) return;
      if (index === 0 && isThrottled) books.count(slot, "throttled");
      const laterUnits = isOwn ? unitsSince(slab.key(slot), part) : 0;
      this.#learn(answer, { slot, key, scopeName: scopeNames[index], isHeld, startedUs, nowUs, permit, laterUnits });
    });
  }

  /** Learns from an answer at one key. To the keys it does not speak of it says at most that it was a success, or that their probe is back. */
  #learn(answer: Answer, at: AnswerAt): void {
    const { keys, options, queue, slab } = this.engine;
    const { slot, isHeld, startedUs, nowUs, permit, laterUnits } = at;
    const { kind, budget, scope } = answer;
    const rule = keys.ruleOf(slot);
    const isBad = isHeld && isBadAnswer(kind) && rule.enabled;
    const saysLeft = isHeld && budget !== undefined;
    const isLesson = rule.adaptive !== undefined && kind !== "neutral" && kind !== "unused";
    if (!isBad && !saysLeft && !isLesson && slab.key(slot).rest?.holds?.incident === undefined) return;
    const holds = needHolds(slab.key(slot));
    const { headers, incident } = holds;
    const heard: Heard = { ...answer, startedUs, nowUs };
    if (saysLeft) {
      // Nothing is known of what was started before a reset.
      holds.headers = headroomAfter(headers, budget, at, laterUnits < Number.POSITIVE_INFINITY ? laterUnits : 0);
    }
    if (isBad) holds.incident = afterBadAnswer(incident, rule, heard, withinOne(options.random));
    else if (incident !== undefined && kind === "success") holds.incident = afterSuccess(incident, startedUs, nowUs);
    const isHit = isBad && holds.incident !== incident;
    if (isHit) this.#tellCooldown(heard, at);
    if (holds.incident !== incident) holds.probe = undefined;
    else if (incident !== undefined && permit !== undefined && holds.probe === permit) {
      holds.incident = { ...incident, probe: kind === "unused" ? "due" : "done" };
      holds.probe = undefined;
    }
    const isSlower = isLesson && (scope === undefined || isHeld) && this.#adapt(rule.adaptive, holds, heard, at);
    const isExhausted = holds.headers !== headers && holds.headers !== undefined && holds.headers.holdUntilUs > nowUs;
    if (isHit || isSlower || isExhausted) queue.judgeDeadlines(slot);
  }

  #tellCooldown({ kind, because, nowUs }: Heard, { slot, key }: AnswerAt): void {
    const incident = this.engine.slab.key(slot).rest?.holds?.incident;
    if (incident === undefined) return;
    const { untilUs, throttleStep, errorStep } = incident;
    const step = Math.max(1, kind === "rate_limited" ? throttleStep : errorStep);
    const { events } = this.engine;
    events.emit?.({ type: "cooldown", key, atMs: nowUs / 1000, untilMs: untilUs / 1000, step, because });
  }

  /** Makes a key slower or faster; whether it is slower now. Only a host and its intents have a latency: what several hosts share has none of its own. */
  #adapt(rule: AdaptiveRule, holds: Holds, heard: Heard, { scopeName, permit }: AnswerAt): boolean {
    const isOneSite = scopeName === "host" || scopeName === "intent";
    const measuredUs = permit === undefined ? undefined : heard.nowUs - heard.startedUs;
    holds.adaptive ??= new Adaptive();
    const before = holds.adaptive.slowedUs;
    learn(rule, holds.adaptive, { ...heard, latencyUs: isOneSite ? (heard.latencyUs ?? measuredUs) : undefined });
    return holds.adaptive.gapUs > 0 && holds.adaptive.slowedUs > before;
  }

  /** Frees the places of a row that were held for longer than `maxHold`, and counts what else came to nothing. */
  lapse(slot: number, nowUs: number): void {
    const { keys, slab } = this.engine;
    if (keys.loseLoose(slot, nowUs)) this.engine.onQuiet?.();
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
    const index = permit.parts.findIndex((part) => part.place === place);
    if (index === 0) books.lapsed(slot, 1);
    queue.touch(slot);
    this.engine.onQuiet?.();
    // A permit is told of once, by the first of its places that is free again.
    if (permit.parts.some((part) => part.place !== place && part.place?.isLapsed === true)) return;
    const key = index === 0 ? permit.key : permit.scopeNames[index];
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

  #partOfScope({ scopeNames, key }: Pick<Need, "scopeNames" | "key">, scope: string | undefined): number {
    const index = scope === undefined ? 0 : scopeNames.indexOf(scope);
    if (index >= 0) return index;
    // A host that is exempt takes nothing of its scopes, so there is nothing to hold.
    if (scopeNames === HOST_ONLY && this.engine.keys.policy.hostRule(key).exempt) return 0;
    throw new TypeError(`outcome.scope is "${scope}", but the request took only ${scopeNames.join(", ")}.`);
  }
}

/** An answer at one of the keys of a request. */
interface AnswerAt {
  readonly slot: number;
  readonly key: string;
  readonly scopeName: string;
  /** It speaks of this key. */
  readonly isHeld: boolean;
  readonly startedUs: number;
  readonly nowUs: number;
  /** Undefined for a start that was recorded. */
  readonly permit: HeldPermit | undefined;
  /** Units started at this key after that request; Infinity when a `reset` lies between. */
  readonly laterUnits: number;
}

function readStarted(startedAtMs: number | undefined, nowUs: number): number {
  if (startedAtMs === undefined) return nowUs;
  if (Number.isFinite(startedAtMs)) return Math.min(nowUs, toUs(startedAtMs));
  throw new RangeError(`startedAtMs must be a finite number; got ${String(startedAtMs)}.`);
}

/** A random number as promised, whatever was delivered: jitter must not shorten anything. */
function withinOne(random: () => number): number {
  try {
    const number = random();
    return number >= 0 && number < 1 ? number : 0;
  } catch {
    return 0;
  }
}
