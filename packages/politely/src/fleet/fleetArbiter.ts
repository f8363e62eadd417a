import { type Answer, answerOf, isBadAnswer } from "../core/answer.js";
import { type Ahead, isNothing, NOBODY, ONE } from "../core/key.js";
import { holdsReadyAt, needHolds } from "../core/limits/holds.js";
import { inFlight, isFollowed } from "../core/limits/places.js";
import type { Rule } from "../core/rule.js";
import {
  type Arbiter,
  type Costs,
  costAt,
  type KeysOf,
  keyName,
  type Need,
  type Stop,
  type TellAt,
} from "../engine/arbiter.js";
import type { Engine } from "../engine/engine.js";
import { readCost } from "../engine/options.js";
import { until } from "../engine/outlook.js";
import type { HeldPermit } from "../engine/permit.js";
import { DeadlineError, StoreError } from "../errors.js";
import type { CompiledPolicy } from "../policy/types.js";
import type { AskedKey, SettleOperation, SettleReply, TakeReply, TakeStop, Told } from "../stores/operations.js";
import type { Outcome, ReleaseOptions } from "../types.js";
import type { Heard, Link } from "./link.js";
import type { Outage } from "./outage.js";
import type { Places } from "./places.js";
import type { Recorded } from "./sharedLimiter.js";
import { asPlain, type SharedStart, settleKeys, sharedStarts, storeName } from "./sharedStart.js";

// The fleet's side of an arbiter. The queue asks it as it asks the one of a process, and gets an answer at once: a start that the
// store has granted, or an instant to look again. Questions to the store are sent meanwhile, one at a time for each lane.

/** Starts are granted ahead by at most this; over a slow way by more, so that one question covers the time until the next one is answered. */
const HORIZON_LEAST_US = 50_000;
const HORIZON_BEYOND_TRIP_US = 100_000;
/** A start that could not be used within this time after its instant, and a round trip, goes back. */
const LATE_US = 50_000;
/** Over a shorter way a turn is worth one start, wherever the store is. */
const NEAR_TRIP_US = 5_000;
/** A question is to be answered so long before its turn. */
const LEAD_US = 5_000;
/** Starts asked for at once: as many as wait, up to this. */
const TOGETHER_MOST = 64;
/** Who looks whether somebody has given back looks no sooner than this after the last time. */
const LOOK_LEAST_US = 5_000;
/** With `batch`, starts are taken for up to so long ahead, and as many share one instant as fit into a tenth of it. */
const BATCH_US = 10_000;
const BATCH_GRAIN_US = 1_000;
const BATCH_MOST = 10_000;
/** Where a question failed, though the store is not away, it is asked again after this. */
const RETRY_US = 1_000_000;

/** Lanes that are remembered when nobody waits in them, and how many are looked at for each new one beyond. */
const LINES_MOST = 10_000;
const FORGOTTEN_AT_ONCE = 4;
/** Keys at which an incident is remembered. Of one that is forgotten a success is told with the next question. */
const HELD_MOST = 100_000;
/** Keys whose fleet is told that this process ends. */
const LEFT_MOST = 256;

/** How a limiter shares its limits. */
export interface FleetOptions {
  /** Names this process among those who share the store. */
  readonly process: string;
  /** Stands before the names of all keys in the store. */
  readonly name: string;
  readonly isBatch: boolean;
  readonly outage: "share" | "closed" | "open";
}

/** A start that is not used yet: from when on it may be, and until when, by this process's clock. */
interface Ready {
  readonly atUs: number;
  readonly lateUs: number;
  readonly start: SharedStart;
}

/** What is known of one lane in the store. */
class Line {
  /** What its head costs; undefined before anybody has asked. */
  costs: Costs | undefined = undefined;
  readonly ready: Ready[] = [];
  isAsking = false;
  /** Bad answers that the store has not heard of yet: nothing is asked before it has. */
  blocked = 0;
  /** Nothing is asked before; minus Infinity: at once. */
  askUs = Number.NEGATIVE_INFINITY;
  /** Why it waits, with this process's instants; undefined: nobody knows yet. */
  stop: TakeStop | undefined = undefined;
  /** Who came up to then has been told why it waits. */
  toldUs = Number.NEGATIVE_INFINITY;
  /** Its requests differ in cost: what is granted for one is no use to the next. */
  isMixed = false;
  /** Its turn has come while it was asking. */
  isWoken = false;

  constructor(
    public need: Need,
    readonly asker: string,
  ) {}
}

/** Says who may start, by what a store grants. While the store is away, by this process's part of the limits. */
export class FleetArbiter implements Arbiter {
  /** Questions that are under way, for whoever closes the limiter. */
  readonly pending = new Set<Promise<unknown>>();
  readonly #lines = new Map<string, Line>();
  readonly #byAsker = new Map<string, Line>();
  /** Keys at which an incident is remembered: successes are reported there. */
  readonly #held = new Set<string>();
  readonly #starts = new WeakMap<HeldPermit, SharedStart>();
  /** Lanes that wait until this process gives back one of its places, first come, first served. */
  readonly #full = new Set<Line>();
  /** Reports that are on their way. */
  readonly #reports = new WeakMap<HeldPermit, Promise<unknown>>();
  readonly #stop: Stop = { index: 0, atUs: 0, slackUs: 0, limit: undefined };
  #lineCount = 0;
  /** Ends what `listen` of the store began. */
  #unlisten: (() => void) | undefined = undefined;

  constructor(
    readonly engine: Engine,
    readonly link: Link,
    readonly places: Places,
    readonly outage: Outage,
    readonly fleet: FleetOptions,
  ) {
    places.owner = { woken: (asker) => this.woken(asker), lapse: (slot) => engine.local.lapse(slot, engine.nowUs()) };
  }

  get keepsLanesApart(): boolean {
    return this.link.failure === undefined || this.fleet.outage !== "share";
  }

  look(need: Need, costs: Costs, nowUs: number, ahead: Ahead, tell?: TellAt): Readonly<Stop> | undefined {
    if (this.isFree(need)) return this.engine.local.look(need, costs, nowUs, ahead, tell);
    if (this.link.failure !== undefined) return this.#lookAway(need, costs, nowUs, ahead, tell);
    const line = this.#lineOf(need);
    const isFullHere = line.ready.length === 0 && this.#isFullHere(need, nowUs);
    if (tell !== undefined) {
      if (isFullHere) return this.engine.local.look(need, costs, nowUs, ahead, tell);
      return isSame(line.costs, costs) ? this.#tell(line, nowUs, tell) : undefined;
    }
    const { queue } = this.engine;
    // Nobody starts, so nothing is asked; with the end of the pause it is.
    if (queue.pausedUntilUs > nowUs) return undefined;
    if (isFullHere) {
      this.#full.add(line);
      return this.engine.local.look(need, costs, nowUs, ahead);
    }
    this.#full.delete(line);
    line.need = need;
    const isOther = line.costs !== undefined && !isSame(line.costs, costs);
    this.#drop(line, (ready) => ready.lateUs < nowUs || isOther);
    // What another head was told says nothing of this one.
    if (isOther) line.askUs = Number.NEGATIVE_INFINITY;
    line.isMixed ||= isOther;
    line.costs = costs;
    const [first] = line.ready;
    const waiting = queue.lanes.get(need.name)?.size ?? 0;
    const slowUs = this.#slowUntilUs(need, nowUs);
    const isShort = line.ready.length < Math.max(1, waiting);
    if (isShort && slowUs <= nowUs) this.#askSoon(line, nowUs);
    const readyUs = Math.max(first?.atUs ?? Number.POSITIVE_INFINITY, slowUs);
    if (first !== undefined && readyUs <= nowUs) return undefined;
    const mayAsk = isShort && !line.isAsking && line.blocked === 0;
    const stop = this.#stop;
    stop.atUs = mayAsk ? Math.min(readyUs, Math.max(line.askUs, slowUs)) : readyUs;
    stop.index = line.stop?.index ?? 0;
    stop.limit = line.stop?.limit;
    return stop;
  }

  /** While the store is away: this process's part of the limits; with `open` only what this process was answered, with `closed` nobody starts. */
  #lookAway(need: Need, costs: Costs, nowUs: number, ahead: Ahead, tell?: TellAt): Readonly<Stop> | undefined {
    const { outage } = this.fleet;
    if (outage === "share") return this.engine.local.look(need, costs, nowUs, ahead, tell);
    let atUs = outage === "closed" ? Number.POSITIVE_INFINITY : nowUs;
    const { keys, slab } = this.engine;
    for (const slot of need.slots) {
      const key = slab.key(slot);
      const holds = key.rest?.holds;
      if (holds !== undefined) atUs = Math.max(atUs, holdsReadyAt(key, holds, keys.ruleOf(slot), nowUs));
    }
    return atUs > nowUs ? Object.assign(this.#stop, { index: 0, limit: "cooldown", atUs, slackUs: 0 }) : undefined;
  }

  take(need: Need, costs: Costs, askedUs: number, nowUs: number): HeldPermit {
    if (this.isFree(need)) return this.engine.local.take(need, costs, askedUs, nowUs);
    if (this.link.failure !== undefined) {
      const own = this.engine.local.take(need, costs, askedUs, nowUs);
      this.outage.note(own, nowUs);
      return own;
    }
    const line = this.#lineOf(need);
    const ready = line.ready.shift();
    const startedUs = ready?.start.startedUs ?? nowUs;
    const permit = this.engine.local.take(need, costs, askedUs, nowUs, startedUs);
    if (ready !== undefined) this.#starts.set(permit, ready.start);
    return permit;
  }

  /** Asks once, without standing in line: a permit, or why there is none. */
  async takeOnce(need: Need, costs: Costs, isAgain = false): Promise<HeldPermit | Told> {
    const nowUs = this.engine.nowUs();
    const { failure } = this.link;
    this.assertOpen(need);
    if (this.isFree(need) || failure !== undefined) {
      const stop = this.look(need, costs, nowUs, NOBODY);
      if (stop === undefined) return this.take(need, costs, nowUs, nowUs);
      return { index: stop.index, limit: stop.limit ?? "queue", atUs: stop.atUs, words: "it is not its turn" };
    }
    const keys = this.asked(need, costs);
    const { era } = this.engine.keys;
    const asker = this.#newAsker();
    const once = { count: 1, horizonUs: 0, grainUs: 1, doesWait: false, isTold: false };
    const sent = this.link.send(this.names(need), { kind: "take", asker, keys, ...once });
    const heard = await sent.catch((error: unknown) => {
      const isOver = !(error instanceof StoreError) || error.isLasting || this.fleet.outage === "closed";
      // Once more; and once the store counts as away, by what this process knows.
      if (isOver || (isAgain && this.link.failure === undefined)) throw error;
    });
    // Rows may have gone while the store was asked.
    const needNow = (): Need => this.engine.keys.need(need.target, this.engine.nowUs(), true);
    if (heard === undefined) return this.takeOnce(needNow(), costs, true);
    const [ready] = this.#readyOf(need, asker, keys, heard);
    if (ready === undefined) return { ...(heard.reply.stop as TakeStop) };
    const atUs = this.engine.nowUs();
    // After a change of policy the request may have other keys.
    if (ready.lateUs < atUs || era !== this.engine.keys.era) {
      this.#giveBack([ready]);
      return { index: 0, limit: "queue", atUs: ready.start.startedUs, words: "the store's answer came too late" };
    }
    const permit = this.engine.local.take(needNow(), costs, atUs, atUs, ready.start.startedUs);
    this.#starts.set(permit, ready.start);
    return permit;
  }

  /** Waits for one question at most. */
  async enterOnce(need: Need, costs: Costs, signal: AbortSignal | undefined): Promise<HeldPermit> {
    const { queue } = this.engine;
    const nowUs = this.engine.nowUs();
    const asked = this.takeOnce(need, costs);
    const taken = await (signal === undefined ? asked : unlessAborted(asked, signal));
    if ("release" in taken) return taken;
    const { atUs, awaitedUntilUs, words } = taken;
    const waitMs = awaitedUntilUs === undefined ? Math.max(0, (atUs - this.link.offsetUs - nowUs) / 1000) : 0;
    const error = new DeadlineError(need.key, waitMs, `${keyName(need, taken.index)}: ${words}${until(waitMs)}`, 0);
    const refusedUs = this.engine.nowUs();
    queue.refused(this.engine.keys.need(need.target, refusedUs, true), costs, error.code, refusedUs, error);
    throw error;
  }

  /** Throws what a request is refused with while the store is away. */
  assertOpen(need: Need): void {
    const { failure } = this.link;
    if (failure !== undefined && (this.fleet.outage === "closed" || failure.isLasting) && !this.isFree(need)) {
      this.engine.queue.refused(need, ONE, failure.code, this.engine.nowUs(), {
        waitMs: Number.POSITIVE_INFINITY,
        reason: failure.message,
      });
      throw failure;
    }
  }

  /** The store has not said yet whether those who wait have to. */
  isUndecided(need: Need): boolean {
    return (
      this.link.failure === undefined &&
      this.#lines.get(need.name)?.stop === undefined &&
      !this.#isFullHere(need, this.engine.nowUs())
    );
  }

  /** Some who waited in a lane do not any more. */
  left({ name }: Need, waiting: number): void {
    const line = this.#lines.get(name);
    if (line === undefined) return;
    this.#giveBack(line.ready.splice(waiting));
    if (waiting > 0 || line.isAsking) return;
    if (line.stop !== undefined) {
      const { need } = line;
      void this.track(this.places.leaveLine(this.names(need), this.#rules(need), line.asker));
    }
    line.stop = undefined;
    line.isMixed = false;
    line.costs = undefined;
    line.askUs = Number.NEGATIVE_INFINITY;
  }

  releasePermit(permit: HeldPermit, outcome: Outcome | undefined, options: ReleaseOptions | undefined): Promise<void> {
    return this.#answer(permit, outcome, true, options);
  }

  reportAnswer(permit: HeldPermit, outcome: Outcome): Promise<void> {
    return this.#answer(permit, outcome, false);
  }

  /** What was answered to a start, and with `isOver` its end: noted here, and told to the store. */
  async #answer(permit: HeldPermit, outcome: Outcome | undefined, isOver: boolean, options?: ReleaseOptions) {
    if (permit.isReleased) return;
    const { local } = this.engine;
    const start = this.#starts.get(permit);
    const answer = local.answerOf(permit, outcome);
    const isNews = !local.isKnown(permit, answer);
    const { need } = permit.grant;
    if (isOver) {
      void local.releasePermit(permit, outcome, options);
      this.#wakeFull(need.slots);
      if (start === undefined) this.outage.ended(permit);
      else this.places.remove(start);
    } else void local.reportAnswer(permit, outcome as Outcome);
    if (!isNews && (start === undefined || !isOver)) return;
    const spent = options?.cost === undefined ? undefined : readCost(need.scopeNames, options.cost, 0);
    const heard: Answer = isNews ? answer : { ...answer, kind: "neutral", budget: undefined };
    await (start === undefined
      ? this.#tellLate(permit, heard)
      : this.#settle(start, heard, spent ?? start.costs, permit, isOver));
  }

  /** Tells a store that is back of a bad answer to a start that it does not know. */
  async #tellLate(permit: HeldPermit, answer: Answer): Promise<void> {
    if (this.link.failure !== undefined || !isBadAnswer(answer.kind)) return;
    const { need } = permit.grant;
    const meant = meantIn(permit, answer);
    const names = this.names(need);
    const work = this.#sendRecord(names, asPlain(this.#rules(need)), { answer, meant });
    this.#block(need.slots[meant], work);
    const unheard = (): void => this.outage.noteHeld(permit, answer.scope ?? "host");
    await this.track(work.then(({ reply }) => this.#heard(names, permit.key, reply), unheard));
  }

  /** A place of this process is free: one lane that waits for that may ask. */
  #wakeFull(slots: readonly number[]): void {
    for (const line of this.#full) {
      if (!line.need.slots.some((slot) => slots.includes(slot))) continue;
      this.#full.delete(line);
      if (!this.engine.queue.lanes.has(line.need.name)) continue;
      this.#again(line, Number.NEGATIVE_INFINITY);
      return;
    }
  }

  /** The instant of a start on the store's clock; of one that the store did not grant as well as this process knows it. */
  sharedStart(permit: HeldPermit): { readonly startedUs: number; readonly token: number | undefined } {
    return this.#starts.get(permit) ?? { startedUs: permit.startedUs + this.link.offsetUs, token: undefined };
  }

  /** The store says how long a hold is; while it is away, this process does. */
  get storeTellsHolds(): boolean {
    return this.link.failure === undefined;
  }

  /** Tells the store of the end of a start, or of its answer, where either changes anything there. */
  async #settle(start: SharedStart, answer: Answer, spent: Costs, permit: HeldPermit, isOver: boolean): Promise<void> {
    const isBad = isBadAnswer(answer.kind);
    const isHeard = isBad || answer.budget !== undefined || start.keys.some((key) => this.#held.has(key));
    const meant = meantIn(permit, answer);
    const keys = settleKeys(start, answer.kind === "unused" ? undefined : spent, meant);
    const changes = !keys.every(({ unused }) => isNothing(unused));
    if (!(isOver && start.isFollowed) && !changes && !isHeard) return;
    // What was said of it before comes first.
    const send = () => this.#sendSettle(start, { isOver, keys, answer, random: isBad ? this.engine.random() : 0 });
    const before = this.#reports.get(permit);
    const work = before === undefined ? send() : before.then(send, send);
    if (!isOver) this.#reports.set(permit, work);
    if (isBad) this.#block(start.slots[meant] ?? start.slots[0], work);
    const unheard = (): void => {
      // What the store could not be told now it is told when it is back.
      if (isBad) this.outage.noteHeld(permit, answer.scope ?? "host");
    };
    await this.track(work.then(({ reply }) => this.#heard(start.keys, permit.key, reply), unheard));
  }

  #sendSettle(start: SharedStart, told: Pick<SettleOperation, "isOver" | "keys" | "answer" | "random">) {
    const { startedUs, grantedUs, place } = start;
    const about = { asker: this.#newAsker(), startedUs, grantedUs, place };
    return this.link.send(start.keys, { kind: "settle", ...about, ...told });
  }

  /** What was granted at a key before a bad answer goes back, and nothing is asked there until the store has heard of it. */
  #block(slot: number, work: Promise<unknown>): void {
    const lines = Array.from(this.#lines.values()).filter(({ need }) => need.slots.includes(slot));
    for (const line of lines) {
      line.blocked += 1;
      this.#giveBack(line.ready.splice(0));
    }
    const unblock = (): void => {
      for (const line of lines) {
        line.blocked -= 1;
        this.#again(line, Number.NEGATIVE_INFINITY);
      }
    };
    work.then(unblock, unblock);
  }

  /** Holds that an answer has begun, and those whose turn has come. */
  #heard(keys: readonly string[], key: string, { holds, nowUs, wake }: SettleReply): void {
    const { events } = this.engine;
    for (const { index, untilUs, step, because } of holds) {
      this.#held.add(keys[index]);
      const atMs = this.engine.nowUs() / 1000;
      events.emit?.({ type: "cooldown", key, atMs, untilMs: atMs + (untilUs - nowUs) / 1000, step, because });
    }
    this.#wake(wake);
    events.flush();
  }

  #wake(askers: readonly string[]): void {
    for (const asker of askers) this.woken(asker);
  }

  /** Somebody gave back what an asker waits for. */
  woken(asker: string): void {
    const line = this.#byAsker.get(asker);
    if (line === undefined) return;
    // What it is answered may be from before.
    line.isWoken = line.isAsking;
    this.#again(line, Number.NEGATIVE_INFINITY);
  }

  /** Lets everybody ask anew: the store is back, or away, or something was changed at it. */
  askAnew(): void {
    for (const line of this.#lines.values()) {
      this.#giveBack(line.ready.splice(0));
      line.stop = undefined;
      this.#again(line, Number.NEGATIVE_INFINITY);
    }
  }

  #again(line: Line, askUs: number): void {
    line.askUs = askUs;
    const { queue } = this.engine;
    for (const slot of line.need.slots) queue.touch(slot);
    queue.run();
  }

  /** This process holds all places of a key: its own releases say when to ask. */
  #isFullHere({ slots }: Need, nowUs: number): boolean {
    const { keys, slab } = this.engine;
    return slots.some((slot) => {
      const rule = keys.ruleOf(slot);
      return rule.concurrency < Number.POSITIVE_INFINITY && inFlight(slab.key(slot), rule, nowUs) >= rule.concurrency;
    });
  }

  #askSoon(line: Line, nowUs: number): void {
    if (line.isAsking || line.blocked > 0 || line.askUs > nowUs) return;
    line.isAsking = true;
    // Those who come in the same turn are asked for together.
    queueMicrotask(() => {
      void this.track(this.#ask(line));
    });
  }

  async #ask(line: Line): Promise<void> {
    const { need, asker, costs = ONE } = line;
    const waiting = Math.max(1, this.engine.queue.lanes.get(need.name)?.size ?? 0);
    const { isBatch } = this.fleet;
    const { roundTripUs } = this.link;
    // All processes are to know of a 429 within a round trip and 100 ms.
    const isContended = this.link.parts.store.isContended === true;
    const beyondUs = isContended ? HORIZON_BEYOND_TRIP_US : Math.min(roundTripUs + 2 * LEAD_US, HORIZON_BEYOND_TRIP_US);
    const farUs = roundTripUs + beyondUs;
    const horizonUs = isBatch ? batchUs(this.#rules(need)) : Math.max(HORIZON_LEAST_US, farUs);
    const grainUs = isBatch ? Math.min(BATCH_GRAIN_US, Math.ceil(horizonUs / 10)) : 1;
    const most = line.isMixed ? 1 : isBatch ? BATCH_MOST : TOGETHER_MOST;
    const count = Math.max(1, Math.min(waiting - line.ready.length, most));
    const keys = this.asked(need, costs);
    const { era } = this.engine.keys;
    try {
      const isTold = this.#unlisten !== undefined && this.link.parts.store.listen !== undefined;
      const inTurn = isContended && roundTripUs > NEAR_TRIP_US ? startsIn(horizonUs, this.#rules(need)) : undefined;
      const take = { kind: "take", asker, keys, count, horizonUs, inTurn, grainUs, doesWait: true, isTold } as const;
      const heard = await this.link.send(this.names(need), take);
      line.isAsking = false;
      const ready = this.#readyOf(need, asker, keys, heard);
      // Another policy, or a head that costs something else, has come meanwhile.
      const isStale = era !== this.engine.keys.era || !isSame(line.costs, costs);
      if (isStale) this.#giveBack(ready);
      this.#answered(line, isStale ? [] : ready, heard, horizonUs);
      if (isStale) this.#again(line, Number.NEGATIVE_INFINITY);
    } catch (error) {
      line.isAsking = false;
      this.#failed(line, keys, error);
    }
  }

  #answered(line: Line, ready: readonly Ready[], { reply, heardUs }: Heard<TakeReply>, horizonUs: number): void {
    const { queue } = this.engine;
    const { nowUs, stop } = reply;
    line.ready.push(...ready);
    const here = (us: number): number => heardUs + (us - nowUs);
    const { roundTripUs } = this.link;
    if (stop?.awaitedUntilUs !== undefined) this.#listen();
    // A turn within the horizon is not known from a limit, or it would have been granted: it says when to look whether somebody has given back.
    const isLook = stop !== undefined && (stop.awaitedUntilUs !== undefined || stop.turnUs <= nowUs + horizonUs);
    const leadUs = isLook ? roundTripUs / 2 : Math.min(roundTripUs + LEAD_US, horizonUs);
    line.stop = stop && {
      ...stop,
      atUs: here(stop.atUs),
      turnUs: here(stop.turnUs),
      awaitedUntilUs: stop.awaitedUntilUs && here(stop.awaitedUntilUs),
    };
    const askUs = stop === undefined ? Number.NEGATIVE_INFINITY : here(stop.turnUs) - leadUs;
    line.askUs = isLook ? Math.max(askUs, heardUs + LOOK_LEAST_US) : askUs;
    if (line.isWoken) line.askUs = Number.NEGATIVE_INFINITY;
    line.isWoken = false;
    const waiting = queue.lanes.get(line.need.name)?.size ?? 0;
    // What woke it may be of use to another lane.
    if (line.ready.length === 0 || waiting === 0) this.#wakeFull(line.need.slots);
    this.left(line.need, waiting);
    if (waiting === 0) return;
    this.#rememberHold(line, heardUs);
    this.#again(line, line.askUs);
    // All of them may have started.
    if (!queue.lanes.has(line.need.name)) return;
    // Those who came since the last reply hear why they wait; those for whom there is no room are refused.
    if (line.stop !== undefined) {
      queue.decided(line.need, line.toldUs, line.ready.length);
      line.toldUs = heardUs;
    }
    queue.judgeDeadlines(line.need.slots[0]);
  }

  /** A cooldown or a pause that the store told of holds also while it is away. */
  #rememberHold({ need, stop }: Line, nowUs: number): void {
    if (stop?.limit !== "cooldown" && stop?.limit !== "pause") return;
    const { atUs: untilUs, because = "" } = stop;
    const holds = needHolds(this.engine.slab.key(need.slots[stop.index]));
    if (stop.limit === "pause") holds.pausedUntilUs = untilUs;
    else if (untilUs > (holds.incident?.untilUs ?? nowUs)) {
      const steps = { throttleStep: 0, errorStep: 0, throttleRaised: true, errorRaised: true };
      holds.incident = { ...steps, untilUs, beganUs: nowUs, probe: "due", probeAtUs: 0, because };
    }
  }

  /** From when on somebody waits for an answer, the store tells whose turn it is, if it can. */
  #listen(): void {
    this.#unlisten ??= this.link.parts.store.listen?.(this.fleet.process, (asker) => this.woken(asker)) ?? ignore;
  }

  #failed(line: Line, keys: readonly AskedKey[], error: unknown): void {
    const { queue } = this.engine;
    const lane = queue.lanes.get(line.need.name);
    const rules = keys.map(({ rule }) => rule);
    if (rules.some(isFollowed)) this.places.doubt(this.names(line.need), rules);
    if (this.link.failure === undefined && error instanceof StoreError && error.isLasting) {
      if (lane !== undefined) queue.refuseAll([lane], error);
      return;
    }
    if (lane !== undefined) this.#again(line, this.engine.nowUs() + RETRY_US);
  }

  #readyOf(need: Need, asker: string, keys: readonly AskedKey[], heard: Heard<TakeReply>): Ready[] {
    const { reply, number, heardUs, freshUs } = heard;
    const names = this.names(need);
    const rules = keys.map(({ rule }) => rule);
    // Many at once may make up too many when they come late. Over a slow way all of them would come late.
    const isSharp = this.fleet.isBatch && this.link.roundTripUs <= batchUs(rules);
    const slackUs = isSharp ? batchUs(rules) : LATE_US;
    this.outage.sawMembers(reply.members);
    for (const name of names) {
      if (!reply.isHeld) this.#held.delete(name);
      else if (this.#held.size < HELD_MOST) this.#held.add(name);
    }
    const asked = { names, slots: need.slots, asker, number, keys };
    return sharedStarts(asked, reply).map((start) => {
      // The store frees places that its process does not name: from now on it does.
      if (start.isFollowed) this.places.add(start);
      const aheadUs = start.startedUs - reply.nowUs;
      // What another process carried out in our stead is heard of a round trip later.
      const youngUs = Math.max(aheadUs, Math.min(0, aheadUs + this.link.usualUs));
      return { atUs: heardUs + aheadUs, lateUs: freshUs + youngUs + slackUs, start };
    });
  }

  #giveBack(some: readonly Ready[]): void {
    for (const { start } of some) {
      this.places.remove(start);
      this.#wakeFull(start.slots);
      const keys = settleKeys(start, undefined, -1);
      const sent = this.#sendSettle(start, { isOver: true, keys, answer: answerOf("unused"), random: 0 });
      void this.track(sent.then(({ reply }) => this.#wake(reply.wake), ignore));
    }
  }

  /** Gives back what is not to be used. */
  #drop(line: Line, isMeant: (ready: Ready) => boolean): void {
    if (!line.ready.some(isMeant)) return;
    const ready = line.ready.splice(0);
    line.ready.push(...ready.filter((one) => !isMeant(one)));
    this.#giveBack(ready.filter(isMeant));
  }

  #tell(line: Line, nowUs: number, tell: TellAt): Readonly<Stop> | undefined {
    const { stop } = line;
    // What stops the next one does not stop those who may start.
    if (line.ready.length > 0 || stop === undefined || (stop.awaitedUntilUs ?? stop.atUs) <= nowUs) return undefined;
    const { index, limit, atUs, awaitedUntilUs, words, because } = stop;
    tell(index, limit, atUs, words, awaitedUntilUs, because);
    return Object.assign(this.#stop, { index, limit, atUs, slackUs: 0 });
  }

  /** Until when robots.txt holds a request in this process. */
  #slowUntilUs({ slots }: Need, nowUs: number): number {
    const robots = this.engine.slab.key(slots[0]).rest?.holds?.robots;
    return robots === undefined || robots.untilUs <= nowUs ? Number.NEGATIVE_INFINITY : robots.holdUntilUs;
  }

  /** What is asked for at each key: its rule, and a gap that this process keeps beyond it. */
  asked(need: Need, costs: Costs): AskedKey[] {
    const { keys, slab } = this.engine;
    const nowUs = this.engine.nowUs();
    return need.slots.map((slot, index) => {
      const rule = keys.ruleOf(slot);
      const { robots, adaptive } = slab.key(slot).rest?.holds ?? {};
      const slowdowns = [robots, rule.adaptive === undefined ? undefined : adaptive];
      const slowUs = Math.max(0, ...slowdowns.map((one) => (one !== undefined && one.untilUs > nowUs ? one.gapUs : 0)));
      return { rule, cost: costAt(costs, index), slowUs };
    });
  }

  /** Whether nothing limits a request, so that the store is not asked. */
  isFree({ host, slots }: Need): boolean {
    return host.exempt || slots.every((slot) => !this.engine.keys.ruleOf(slot).enabled);
  }

  /** Tells the store what happened, or was decided, without asking. */
  async recordAt(need: Need, told: Recorded): Promise<void> {
    const names = this.names(need);
    const work = this.#sendRecord(names, this.asked(need, ONE), told);
    const { reply } = await this.track(work);
    this.#heard(names, need.key, reply);
    // A start that was counted makes nobody start sooner.
    if (told.pauseUs === undefined && told.reset === undefined && reply.holds.length === 0) return;
    for (const line of this.#lines.values()) {
      if (!line.need.slots.some((slot) => need.slots.includes(slot))) continue;
      if (told.pauseUs !== 0) this.#giveBack(line.ready.splice(0));
      this.#again(line, Number.NEGATIVE_INFINITY);
    }
  }

  #sendRecord(names: readonly string[], keys: readonly AskedKey[], told: Recorded): Promise<Heard<SettleReply>> {
    const whole = { agesUs: [], counts: [], meant: 0, ...told };
    const random = told.answer === undefined ? 0 : this.engine.random();
    return this.link.send(names, { kind: "record", asker: this.#newAsker(), keys, random, ...whole });
  }

  /** Resets every key that this process knows, hosts, intents, scopes and `global`, for everybody. */
  async resetAll(reset: "pacing" | "all"): Promise<void> {
    const { keys } = this.engine;
    for (const [row, slot] of Array.from(keys.rows)) {
      if (keys.rows.get(row) !== slot || !keys.ruleOf(slot).enabled) continue;
      await this.track(this.#sendRecord(this.names({ rowNames: [row] }), asPlain([keys.ruleOf(slot)]), { reset }));
    }
  }

  /** What slows this process down beyond its rule at one key, the slower first. */
  slowdownOf(
    { slots }: Need,
    index: number,
  ): { limit: "robots" | "adaptive"; words: string; because: string } | undefined {
    const { robots, adaptive } = this.engine.slab.key(slots[index]).rest?.holds ?? {};
    const isAdaptive = adaptive !== undefined && adaptive.gapUs > (robots?.gapUs ?? 0);
    const slowdown = isAdaptive ? adaptive : robots;
    if (slowdown === undefined) return undefined;
    const words = `${isAdaptive ? "slower for now," : "robots.txt says"} ${slowdown.because}`;
    return { limit: isAdaptive ? "adaptive" : "robots", words, because: slowdown.because };
  }

  partOf(policy: CompiledPolicy): CompiledPolicy {
    return this.outage.partOf(policy);
  }

  /** Gives back what was granted and not used, tells the store what it has to know, and leaves the fleet. */
  async close(): Promise<void> {
    for (const line of this.#lines.values()) this.#giveBack(line.ready.splice(0));
    while (this.pending.size > 0) await Promise.allSettled(this.pending);
    this.#unlisten?.();
    this.places.stopIfFree();
    const { keys } = this.engine;
    if (this.link.failure === undefined) {
      const rows = Array.from(
        keys.rows,
        ([row, slot]) => [storeName(this.fleet.name, row), keys.ruleOf(slot)] as const,
      );
      // Tasks that still run keep their places, which are named until they are over.
      const left = rows.filter(([key]) => !this.places.has(key)).slice(-LEFT_MOST);
      await Promise.allSettled(left.map(([key, rule]) => this.places.leave(key, rule)));
    }
    this.link.close();
  }

  #rules({ slots }: KeysOf): Rule[] {
    return slots.map((slot) => this.engine.keys.ruleOf(slot));
  }

  /** The names of its keys in the store. */
  names({ rowNames }: Pick<KeysOf, "rowNames">): string[] {
    return rowNames.map((rowName) => storeName(this.fleet.name, rowName));
  }

  #lineOf(need: Need): Line {
    const known = this.#lines.get(need.name);
    if (known !== undefined) return known;
    if (this.#lines.size >= LINES_MOST) this.#forgetOldest();
    const line = new Line(need, this.#newAsker());
    this.#lines.set(need.name, line);
    this.#byAsker.set(line.asker, line);
    return line;
  }

  /** Lets go of the lines that were made first, a few for each new one; those that are in use go to the end. */
  #forgetOldest(): void {
    for (let looked = 0; looked < FORGOTTEN_AT_ONCE; looked++) {
      const [[name, line]] = this.#lines;
      this.#lines.delete(name);
      if (line.isAsking || this.engine.queue.lanes.has(name)) this.#lines.set(name, line);
      else this.#byAsker.delete(line.asker);
    }
  }

  #newAsker(): string {
    return `${this.fleet.process}.${(++this.#lineCount).toString(36)}`;
  }

  /** Remembers work until it is done. */
  track<Value>(work: Promise<Value>): Promise<Value> {
    this.pending.add(work);
    const forget = (): void => {
      this.pending.delete(work);
    };
    work.then(forget, forget);
    return work;
  }
}

/** Which of the keys of a start its answer speaks of. */
function meantIn({ grant }: HeldPermit, { scope }: Answer): number {
  return scope === undefined ? 0 : Math.max(0, grant.need.scopeNames.indexOf(scope));
}

/** What a question came to, unless its caller gives up: then a start that it is granted goes back. */
function unlessAborted<Value extends HeldPermit | Told>(asked: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      const { reason } = signal as { readonly reason: unknown };
      reject(reason);
      asked.then((taken) => ("release" in taken ? taken.release("unused") : undefined), ignore);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    asked.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** So long that what is used late stays a small part of what the shortest window allows. */
function batchUs(rules: readonly Rule[]): number {
  return Math.min(BATCH_US, ...rules.flatMap(({ windows }) => windows.map(({ perUs }) => Math.ceil(perUs / 100))));
}

/** How many starts these rules allow in so long, in the long run. */
function startsIn(us: number, rules: readonly Rule[]): number {
  const paces = rules.flatMap(({ gapUs, rateCount, ratePerUs, windows }) => [
    gapUs,
    rateCount === 0 ? 0 : ratePerUs / rateCount,
    ...windows.map(({ count, perUs }) => perUs / count),
  ]);
  const paceUs = Math.max(...paces);
  return paceUs === 0 ? TOGETHER_MOST : Math.max(1, Math.min(TOGETHER_MOST, Math.floor(us / paceUs)));
}

function isSame(a: Costs | undefined, b: Costs): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

const ignore = (): void => undefined;
