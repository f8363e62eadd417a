import { isBadAnswer } from "../core/answer.js";
import { binding, end, giveBack, lapse, readyAt, record, take, unitsSince } from "../core/decide.js";
import { type Ahead, type Cost, NOBODY, NOTHING, ONE, type Place, ROW, type Taken } from "../core/key.js";
import type { Outcome, RecordOptions, ReleaseOptions, Target } from "../types.js";
import type { Arbiter, Found, Stop } from "./arbiter.js";
import type { Engine } from "./engine.js";
import { toUs } from "./instant.js";
import { checkNames } from "./knownNames.js";
import { type Costs, costAt, HOST_ONLY, type Need, readCost } from "./need.js";
import { type Answer, isReported, type Reported, readOutcome, reportedOf } from "./outcome.js";
import { HeldPermit, type Part, type PermitOwner } from "./permit.js";
import { HAS_GATE, HAS_REST, PROFILE_MASK } from "./slab.js";

const { FLIGHT, PROFILE } = ROW;

/** Decides over the rows of this process: who may start, what a start takes, and what becomes of it when its permit comes back. */
export class LocalArbiter implements Arbiter, PermitOwner {
  readonly #stop: Stop = { index: 0, atUs: 0, slackUs: 0, limit: undefined };
  /** What was last said about a permit before its release. */
  readonly #reported = new WeakMap<HeldPermit, Reported>();

  constructor(readonly engine: Engine) {}

  stopOf({ slots }: Need, costs: Costs, nowUs: number): Readonly<Stop> | undefined {
    const { keys, slab } = this.engine;
    const stop = this.#stop;
    stop.atUs = nowUs;
    for (let index = 0; index < slots.length; index++) {
      const { rule } = keys.profileOf(slots[index]);
      this.lapse(slots[index], nowUs);
      const cost = costAt(costs, index);
      const readyUs = readyAt(slab.key(slots[index]), rule, cost, nowUs);
      if (readyUs <= stop.atUs) continue;
      const { limit } = binding;
      stop.index = index;
      stop.atUs = readyUs;
      stop.limit = limit;
      stop.slackUs = limit === "rate" ? ((rule.burst - cost.rate) * rule.ratePerUs) / rule.rateCount : 0;
    }
    return stop.atUs > nowUs ? stop : undefined;
  }

  readyAt(slot: number, cost: Cost, nowUs: number, ahead: Ahead = NOBODY): number {
    this.lapse(slot, nowUs);
    return readyAt(this.engine.slab.key(slot), this.engine.keys.profileOf(slot).rule, cost, nowUs, ahead);
  }

  look({ slots }: Need, costs: Costs, nowUs: number, ahead: Ahead): Found[] {
    const { keys, slab } = this.engine;
    const found: Found[] = [];
    slots.forEach((slot, index) => {
      this.lapse(slot, nowUs);
      readyAt(slab.key(slot), keys.profileOf(slot).rule, costAt(costs, index), nowUs, ahead, (obstacle) => {
        found.push({ ...obstacle, index });
      });
    });
    return found;
  }

  take(need: Need, costs: Costs, askedUs: number, nowUs: number): HeldPermit | Readonly<Stop> {
    const stop = this.stopOf(need, costs, nowUs);
    if (stop !== undefined) return stop;
    const { engine } = this;
    const { books, events, keys, learning } = engine;
    const { slots, key } = need;
    const permit = this.#permit(need, costs, nowUs, nowUs - askedUs);
    books.granted(slots[0], nowUs, nowUs - askedUs);
    books.flying += 1;
    for (const slot of slots) {
      if (engine.slab.hasFlag(slot, HAS_REST)) learning.started(slot, key, permit);
      if (engine.slab.hasFlag(slot, HAS_GATE)) engine.queue.started(slot);
    }
    if (events.hasListeners) {
      events.emit({ type: "grant", key, atMs: nowUs / 1000, waitedMs: (nowUs - askedUs) / 1000 });
    }
    keys.granted(nowUs);
    return permit;
  }

  #permit({ slots, key, rowNames, scopeNames }: Need, costs: Costs, nowUs: number, waitedUs: number): HeldPermit {
    const first = this.#taken(slots[0], costAt(costs, 0), nowUs);
    const sinceUs = first.previousUs === Number.NEGATIVE_INFINITY ? undefined : nowUs - first.previousUs;
    if (slots.length === 1 && costs === ONE && first.place === undefined && first.period < 0) {
      return new HeldPermit(this, key, slots[0], nowUs, first.unitsAfter, sinceUs, waitedUs);
    }
    const parts: Part[] = [Object.assign(first, { slot: slots[0], rowName: rowNames[0] })];
    for (let index = 1; index < slots.length; index++) {
      const taken = this.#taken(slots[index], costAt(costs, index), nowUs);
      parts.push(Object.assign(taken, { slot: slots[index], rowName: rowNames[index] }));
    }
    const permit = new HeldPermit(this, key, slots[0], nowUs, { parts, scopeNames }, sinceUs, waitedUs);
    for (const { place } of parts) if (place !== undefined) place.permit = permit;
    return permit;
  }

  #taken(slot: number, cost: Cost, nowUs: number): Taken {
    const key = this.engine.slab.key(slot);
    const taken = take(key, this.engine.keys.profileOf(slot).rule, cost, nowUs);
    key.noteLog();
    return taken;
  }

  record(target: Target, outcome: Outcome, options?: RecordOptions): void {
    const { engine } = this;
    if (outcome === undefined) throw new TypeError("record needs an outcome: how the request ended.");
    const answer = this.#read(outcome);
    const nowUs = engine.nowUs();
    if (options !== undefined) checkNames(options, ["startedAtMs"], "options");
    const startedUs = readStarted(options?.startedAtMs, nowUs);
    const need = engine.need(target, nowUs);
    const heldAt = this.#partOfScope(need.scopeNames, need.key, answer.scope);
    if (answer.kind === "unused") return;
    const { key, slots, scopeNames } = need;
    for (const slot of slots) {
      // Those held too long come first: they are answered by then.
      this.lapse(slot, nowUs);
      const row = engine.slab.key(slot);
      record(row, engine.keys.profileOf(slot).rule, ONE, startedUs, nowUs);
      row.noteLog();
    }
    engine.books.granted(slots[0], startedUs, 0);
    if (answer.kind === "rate_limited") engine.books.count(slots[0], "throttled");
    engine.events.tellFirst(
      () => [{ type: "grant", key, atMs: startedUs / 1000, waitedMs: 0, recorded: true }],
      () =>
        slots.forEach((slot, index) => {
          const at = { slot, key, scopeName: scopeNames[index], startedUs, nowUs, permit: undefined, laterUnits: 0 };
          engine.learning.hear(answer, at, index === heldAt);
          engine.queue.touch(slot);
        }),
    );
    engine.queue.run();
  }

  reportAnswer(permit: HeldPermit, outcome: Outcome): void {
    if (permit.isReleased) return;
    const answer = this.#read(outcome);
    if (answer.kind === "unused") throw new TypeError('report takes an answer; give "unused" to release.');
    if (outcome === undefined) throw new TypeError("report needs an outcome: how the request was answered.");
    if (isReported(this.#reported.get(permit), answer, outcome)) return;
    const heldAt = this.#partOfScope(permit.scopeNames, permit.key, answer.scope);
    this.#hear(answer, permit, heldAt, this.engine.nowUs());
    this.#reported.set(permit, reportedOf(answer, outcome));
    for (const { slot } of permit.parts) this.engine.queue.touch(slot);
    this.engine.queue.run();
  }

  releasePermit(permit: HeldPermit, outcome: Outcome | undefined, options: ReleaseOptions | undefined): void {
    if (permit.isReleased) return;
    if (options === undefined && this.#releasePlain(permit, outcome)) return;
    const { engine } = this;
    const answer = this.#read(outcome);
    const { parts, scopeNames, key } = permit;
    if (options !== undefined) checkNames(options, ["cost"], "options");
    const costs = options?.cost === undefined ? undefined : readCost(scopeNames, options.cost, 0);
    const heldAt = this.#partOfScope(scopeNames, key, answer.scope);
    permit.mark = ~permit.mark;
    engine.keys.wasGivenBack = true;
    const nowUs = engine.nowUs();
    parts.forEach((part, index) => {
      const slot = this.#slotOf(part, index, nowUs);
      if (slot !== undefined) this.lapse(slot, nowUs);
      if (slot === undefined || !this.#isOpen(part, slot)) return;
      this.#settle(part, slot, answer, costs && costAt(costs, index), nowUs);
      if (index === 0) engine.books.flying -= 1;
    });
    if (!isReported(this.#reported.get(permit), answer, outcome)) this.#hear(answer, permit, heldAt, nowUs);
    for (const { slot } of parts) engine.queue.touch(slot);
    if (engine.events.hasListeners) {
      const { startedAtMs } = permit;
      engine.events.emit({ type: "release", key, atMs: nowUs / 1000, startedAtMs, outcome: answer.kind });
    }
    engine.onQuiet?.();
    engine.queue.run();
  }

  /** Takes back a permit whose answer can change nothing: nobody waits, listens or learns there, and nothing is held. */
  #releasePlain(permit: HeldPermit, outcome: Outcome | undefined): boolean {
    const { engine } = this;
    if (typeof permit.detail !== "number" || (outcome !== undefined && outcome !== "success")) return false;
    if (engine.onQuiet !== undefined || engine.events.hasListeners) return false;
    const { slot, startedUs } = permit;
    const { keys, slab } = engine;
    const { halves } = slab.chunkOf(slot);
    const half = 2 * slab.wordOf(slot);
    const marks = halves[half + PROFILE];
    // A row that has had a start of this policy for less than `maxHold` is certainly still the same key's.
    if ((marks & (HAS_REST | HAS_GATE)) !== 0 || startedUs < keys.era.fromUs) return false;
    const { maxHoldUs, rule } = keys.profiles.at(marks & PROFILE_MASK);
    if (startedUs + maxHoldUs <= engine.nowUs() || rule.adaptive !== undefined) return false;
    permit.mark = ~permit.mark;
    keys.wasGivenBack = true;
    halves[half + FLIGHT] -= 1;
    engine.books.flying -= 1;
    return true;
  }

  /** The row of a part, as long as it is still that key's. */
  #slotOf(part: Part, index: number, nowUs: number): number | undefined {
    return this.engine.keys.rowOf(part.rowName, index === 0, nowUs) === part.slot ? part.slot : undefined;
  }

  /** Whether a start still counts as in flight. */
  #isOpen({ place, startedUs }: Part, slot: number): boolean {
    if (place !== undefined) return place.isLive;
    const key = this.engine.slab.key(slot);
    return key.halves[2 * key.at + FLIGHT] > 0 && startedUs > (key.rest?.lapsedUntilUs ?? Number.NEGATIVE_INFINITY);
  }

  /** Frees one place, giving back what was not used. */
  #settle(part: Part, slot: number, answer: Answer, cost: Cost | undefined, nowUs: number): void {
    const key = this.engine.slab.key(slot);
    const { rule } = this.engine.keys.profileOf(slot);
    const isUnused = answer.kind === "unused";
    const spent = isUnused ? NOTHING : (cost ?? part.cost);
    if (spent !== part.cost) {
      const { rate, window, quota } = part.cost;
      const unused = { rate: rate - spent.rate, window: window - spent.window, quota: quota - spent.quota };
      giveBack(key, rule, part, unused, nowUs, isUnused);
    }
    end(key, rule, part, nowUs, isUnused ? undefined : spent.window);
    key.noteLog();
  }

  /** Tells the keys of a permit what was answered. The one that is held hears it all; the others, a success or that their probe is back. */
  #hear(answer: Answer, permit: HeldPermit, heldAt: number, nowUs: number): void {
    const { engine } = this;
    const { key, startedUs, scopeNames } = permit;
    const isThrottled = answer.kind === "rate_limited" && this.#reported.get(permit)?.kind !== answer.kind;
    permit.parts.forEach((part, index) => {
      // A permit that lapsed may have lost its row: the key is found again by name, and made where it has to be held.
      let slot = engine.keys.rowOf(part.rowName, index === 0, nowUs);
      if (slot === undefined && index === heldAt && isBadAnswer(answer.kind)) {
        slot = engine.keys.remake(part.rowName, index === 0, nowUs);
      }
      if (slot === undefined) return;
      if (index === 0 && isThrottled) engine.books.count(slot, "throttled");
      const sinceUnits = slot === part.slot ? unitsSince(engine.slab.key(slot), part) : 0;
      const laterUnits = sinceUnits < Number.POSITIVE_INFINITY ? sinceUnits : 0;
      const at = { slot, key, scopeName: scopeNames[index], startedUs, nowUs, permit, laterUnits };
      engine.learning.hear(answer, at, index === heldAt);
    });
  }

  /** Frees the places of a row that were held for longer than `maxHold`, and notes what else came to nothing. */
  lapse(slot: number, nowUs: number): void {
    const { keys, slab } = this.engine;
    keys.lapseLoose(slot, nowUs);
    const key = slab.key(slot);
    const first = key.rest?.places?.first;
    if (first === undefined) return;
    const { rule } = keys.profileOf(slot);
    if (first.startedUs + rule.maxHoldUs > nowUs) return;
    const lapsed: Place[] = [];
    lapse(key, rule, nowUs, (place) => lapsed.push(place));
    key.noteLog();
    for (const place of lapsed) this.#lapsed(slot, place, nowUs);
  }

  #lapsed(slot: number, place: Place, nowUs: number): void {
    const { engine } = this;
    const permit = place.permit as HeldPermit;
    const index = permit.parts.findIndex((part) => part.place === place);
    if (index === 0) {
      engine.books.lapsed(slot, 1);
      engine.books.flying -= 1;
    }
    engine.queue.touch(slot);
    engine.onQuiet?.();
    // A permit is told of once, by the first of its places that is free again.
    if (permit.parts.some((part) => part.place !== place && part.place?.isLapsed === true)) return;
    const key = index === 0 ? permit.key : permit.scopeNames[index];
    const afterMs = (nowUs - place.startedUs) / 1000;
    const atMs = nowUs / 1000;
    const heldFor = `${Math.round(afterMs) / 1000} s`;
    const message = `a permit was not released in ${heldFor}, its place is free again; release permits, read or cancel bodies, or raise maxHold`;
    engine.emitLater(() => ({ type: "expire", key, atMs, what: "permit", afterMs }));
    engine.emitLater(() => ({ type: "warn", key, atMs, message }));
  }

  #read(outcome: Outcome | undefined): Answer {
    return readOutcome(outcome, this.engine.options.readHeaders, () => this.engine.clock.wall());
  }

  #partOfScope(scopeNames: readonly string[], key: string, scope: string | undefined): number {
    const index = scope === undefined ? 0 : scopeNames.indexOf(scope);
    if (index >= 0) return index;
    // A host that is exempt takes nothing of its scopes, so there is nothing to hold.
    if (scopeNames === HOST_ONLY && this.engine.keys.policy.hostRule(key).exempt) return 0;
    throw new TypeError(`outcome.scope is "${scope}", but the request took only ${scopeNames.join(", ")}.`);
  }
}

function readStarted(startedAtMs: number | undefined, nowUs: number): number {
  if (startedAtMs === undefined) return nowUs;
  if (!Number.isFinite(startedAtMs))
    throw new RangeError(`startedAtMs must be a finite number; got ${String(startedAtMs)}.`);
  return Math.min(nowUs, toUs(startedAtMs));
}
