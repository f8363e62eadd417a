import { type Answer, isBadAnswer } from "../../core/answer.js";
import { isReported, reportedOf } from "../../engine/permit.js";
import type { AnswerNote, Sender, SettleKey, SettleOperation, SettleReply } from "../../shared/operation.js";
import type { Outcome, ReleaseOptions } from "../../types.js";
import { NOTHING } from "../cost.js";
import { readCost } from "../demand.js";
import type { Engine } from "../engine.js";
import { costAt, type LaneCost } from "../lane.js";
import type { Link } from "./link.js";
import { aged } from "./linkAnswers.js";
import type { Plan } from "./plan.js";
import type { Renewals } from "./renewals.js";
import type { Grant, Run } from "./run.js";
import type { SharedPermit, SharedPermitOwner } from "./sharedPermit.js";
import type { Standby } from "./standby.js";

const NEUTRAL: Answer = {
  kind: "neutral",
  retryAfterUs: 0,
  latencyUs: undefined,
  because: "no outcome",
  scope: undefined,
  budget: undefined,
};
const UNUSED: Answer = { ...NEUTRAL, kind: "unused", because: "not sent" };

const NOTHING_TOLD = Promise.resolve();

/** An answer told within this counts from when it is told; a later one, as after an outage, from when it was heard. */
const OLD_US = 1_000_000;

/** What a settler works with. */
export interface SettlerParts {
  readonly engine: () => Engine;
  readonly link: Link;
  readonly standby: Standby;
  readonly renewals: Renewals;
  /** Something was given back at these keys. */
  readonly onFreed: (storeKeys: readonly string[]) => void;
  /** The store says that these keys are to be left alone from now on. */
  readonly onHeld: (storeKeys: readonly string[]) => void;
  /** Work that closing has to wait for. */
  readonly track: (work: Promise<unknown>) => void;
}

/** Takes shared starts back and tells the store what was answered. */
export class Settler implements SharedPermitOwner {
  constructor(readonly parts: SettlerParts) {}

  begun(permit: SharedPermit): void {
    const { grant } = permit;
    if (grant === undefined) return;
    this.parts.standby.count(grant.facts.plan, 1);
    if (grant.facts.isFollowed) this.parts.renewals.add(permit, grant);
  }

  settle(permit: SharedPermit, outcome: Outcome | undefined, options: ReleaseOptions | undefined): Promise<void> {
    try {
      const work = this.#settle(permit, outcome, options);
      if (work === undefined) return NOTHING_TOLD;
      this.parts.track(work);
      return work;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** The place of a permit is gone: it is in flight no longer. Its answer is still heard. */
  lapse(permit: SharedPermit): void {
    if (permit.local.isReleased) return;
    const engine = this.parts.engine();
    permit.lapsedAtMs = engine.nowUs() / 1000;
    const [host = permit.local] = permit.local.parts ?? [];
    // Where it has not lapsed in the books of this process already.
    if (engine.ledger.isOpen(host, engine.nowUs())) engine.books.count(host.slot, "lapsed");
    permit.local.release();
    if (permit.grant !== undefined) this.parts.standby.count(permit.grant.facts.plan, -1);
  }

  /** Takes a permit back. Undefined when there is nothing to tell the store, which is the usual end of a start that only took units. */
  #settle(
    permit: SharedPermit,
    outcome: Outcome | undefined,
    options: ReleaseOptions | undefined,
  ): Promise<void> | undefined {
    const { local, grant } = permit;
    if (permit.lapsedAtMs !== undefined && grant !== undefined) {
      permit.lapsedAtMs = undefined;
      const late = this.#unheard(permit, this.read(outcome), outcome);
      return isBadAnswer(late.kind) ? this.#tell(permit, grant, late, { cost: undefined, isOver: true }) : undefined;
    }
    if (local.isReleased) return undefined;
    const answer = this.read(outcome);
    const cost = options?.cost === undefined ? undefined : readCost(local, options.cost, 0);
    // In the books of this process: it checks the rest of the input, too.
    local.release(localOutcome(answer), options);
    this.parts.renewals.remove(permit);
    if (grant === undefined) return undefined;
    const { plan, isFollowed } = grant.facts;
    this.parts.standby.count(plan, -1);
    const unheard = this.#unheard(permit, answer, outcome);
    const isNews = isFollowed || cost !== undefined || isNew(unheard, grant);
    return isNews ? this.#tellAndFree(permit, grant, unheard, cost) : undefined;
  }

  /** What the store has yet to hear of an answer: one that was reported is told already. */
  #unheard({ reported }: SharedPermit, answer: Answer, outcome: Outcome | undefined): Answer {
    return isReported(reported, answer, outcome) ? NEUTRAL : answer;
  }

  async #tellAndFree(permit: SharedPermit, grant: Grant, answer: Answer, cost: LaneCost | undefined): Promise<void> {
    // Nobody is to start at its place before the hold that it reported is known.
    if (permit.telling !== undefined) await permit.telling;
    await this.#tell(permit, grant, answer, { cost, isOver: true });
    this.parts.onFreed(grant.facts.plan.storeKeys);
  }

  report(permit: SharedPermit, outcome: Outcome): Promise<void> {
    const work = this.#report(permit, outcome);
    this.parts.track(work);
    return work;
  }

  async #report(permit: SharedPermit, outcome: Outcome): Promise<void> {
    const { local, grant } = permit;
    if (local.isReleased) return;
    const answer = this.read(outcome);
    const simple = localOutcome(answer);
    if (simple !== undefined) local.report(simple);
    if (grant !== undefined && isNew(answer, grant) && !isReported(permit.reported, answer, outcome)) {
      permit.reported = reportedOf(answer, outcome);
      const telling = this.#tell(permit, grant, answer, { cost: undefined, isOver: false });
      if (isBadAnswer(answer.kind)) permit.telling = telling.catch(() => undefined);
      await telling;
    }
  }

  /** Returns the starts of a run that nobody used: together where only units are counted, one by one where places are. */
  async giveBack(run: Run): Promise<void> {
    if (run.facts.isFollowed) while (run.left > 0) await this.#giveBack(run.take(run.readyUs));
    else {
      const { grant, unusedAt } = run.takeRest();
      await this.#giveBack(grant, unusedAt);
    }
  }

  /** Returns one start that nobody used. */
  giveBackOne(grant: Grant): Promise<void> {
    return this.#giveBack(grant);
  }

  async #giveBack(grant: Grant, unusedAt?: readonly number[]): Promise<void> {
    const { plan, origin } = grant.facts;
    const make = (sender: Sender): SettleOperation => {
      const operation = operationOf(grant, UNUSED, { heldAt: 0, cost: undefined, isOver: true, random: 0 }, sender);
      return unusedAt === undefined ? operation : { ...operation, unusedAt };
    };
    if (origin === "store") await this.parts.link.sendOrKeep(plan.storeKeys, make);
    else if (origin === "share") await this.parts.standby.settle(plan, make(AWAY));
    this.parts.onFreed(plan.storeKeys);
  }

  /** Tells the store the answer to a start that was only recorded. */
  async tellRecorded(
    plan: Plan,
    key: string,
    answer: Answer,
    { startedUs, isTold }: { readonly startedUs: number; readonly isTold: boolean },
  ): Promise<void> {
    if (!isBadAnswer(answer.kind) && answer.budget === undefined && answer.kind !== "success") return;
    const { link, standby } = this.parts;
    const make = this.#unasked(plan, key, answer, startedUs);
    if (isTold) {
      await this.#send(plan, key, answer, make);
      return;
    }
    link.keep(plan.storeKeys, make);
    this.#announce(plan, key, answer, await standby.hear(plan, answer, { ...make(AWAY), startedUs }));
  }

  /** The answer to a start that the store did not grant, with its instant on the store's timeline as of when it is sent. */
  #unasked(plan: Plan, key: string, answer: Answer, startedUs: number): (sender: Sender) => SettleOperation {
    const start = {
      startedUs,
      token: 0,
      unitsAfter: plan.keys.map(() => FAR_UNITS),
      previousUs: plan.keys.map(() => -1),
    };
    const asker = { asker: "", sequence: 0 };
    const terms = { isFollowed: false, isCooling: true, origin: "store", grantedUs: 0, asker } as const;
    const facts = { plan, key, cost: NOTHING, ...terms };
    const operation = this.#operation({ facts, start, place: "" }, answer, { cost: undefined, isOver: false });
    return (sender) => ({ ...operation(sender), startedUs: startedUs + (this.parts.link.offsetUs ?? 0) });
  }

  /** Understands an outcome. Throws `TypeError` for one that is none. */
  read(outcome: Outcome | undefined): Answer {
    return this.parts.engine().options.readOutcome(outcome);
  }

  async #tell(
    permit: SharedPermit,
    grant: Grant,
    answer: Answer,
    { cost, isOver }: Pick<SettleTerms, "cost" | "isOver">,
  ): Promise<void> {
    const { link, standby } = this.parts;
    const { plan, origin } = grant.facts;
    const isAway = link.isAway && origin === "store" && isBadAnswer(answer.kind);
    const { startedUs } = permit.local;
    if (origin !== "store" || isAway) {
      // Those who start meanwhile have to hear it; the store hears it when it is back.
      const operation = this.#operation(grant, answer, { cost, isOver })(AWAY);
      const heard = await standby.hear(plan, answer, isAway ? { ...operation, startedUs } : operation);
      if (link.isAway) this.#announce(plan, grant.facts.key, answer, heard);
    }
    if (origin === "store")
      await this.#send(plan, grant.facts.key, answer, this.#operation(grant, answer, { cost, isOver }));
    else if (isBadAnswer(answer.kind)) {
      const make = this.#unasked(plan, grant.facts.key, answer, startedUs);
      if (link.isAway) link.keep(plan.storeKeys, make);
      else await this.#send(plan, grant.facts.key, answer, make);
    }
  }

  #operation(
    grant: Grant,
    answer: Answer,
    { cost, isOver }: Pick<SettleTerms, "cost" | "isOver">,
  ): (sender: Sender) => SettleOperation {
    const heldAt = answer.scope === undefined ? 0 : Math.max(0, grant.facts.plan.scopeNames.indexOf(answer.scope));
    const engine = this.parts.engine();
    const terms = { heldAt, cost, isOver, random: withinOne(engine.options.random) };
    const heardUs = engine.nowUs();
    return (sender) => {
      const operation = operationOf(grant, answer, terms, sender);
      const ageUs = engine.nowUs() - heardUs;
      return ageUs < OLD_US ? operation : aged(operation, ageUs);
    };
  }

  async #send(plan: Plan, key: string, answer: Answer, make: (sender: Sender) => SettleOperation): Promise<void> {
    const reply = await this.parts.link.sendOrKeep(plan.storeKeys, make);
    if (reply === undefined) return;
    const held = plan.storeKeys.filter((_, index) => reply.cooldownUs[index] > 0);
    if (held.length > 0) this.parts.onHeld(held);
    reply.cooldownUs.forEach((holdUs, index) => {
      if (holdUs <= 0) return;
      const untilUs = this.parts.engine().nowUs() + holdUs;
      const hold = { untilUs, kind: "cooldown", because: answer.because, saidUs: reply.nowUs } as const;
      this.parts.standby.recollection.hold(plan.storeKeys[index], hold);
    });
    this.#announce(plan, key, answer, reply);
  }

  /** Tells of every key that an answer holds. */
  #announce(plan: Plan, hostKey: string, { because }: Answer, { cooldownUs, steps }: SettleReply): void {
    const engine = this.parts.engine();
    const nowUs = engine.nowUs();
    cooldownUs.forEach((holdUs, index) => {
      if (holdUs <= 0) return;
      const scope = plan.scopeNames[index];
      const key = scope === "host" || scope === "intent" ? hostKey : scope;
      const untilMs = (nowUs + holdUs) / 1000;
      engine.emit(() => ({ type: "cooldown", key, atMs: nowUs / 1000, untilMs, step: steps[index], because }));
    });
  }
}

/** More units than anybody takes: a start that was recorded has nothing to give back. */
const FAR_UNITS = Number.MAX_SAFE_INTEGER;

/** For operations on what stands in for a store: nothing is sent twice there. */
const AWAY: Sender = { asker: "", sequence: 0 };

/** What belongs to the way a start ends. */
interface SettleTerms {
  readonly heldAt: number;
  /** The true cost, where it differs. */
  readonly cost: LaneCost | undefined;
  readonly isOver: boolean;
  readonly random: number;
}

function operationOf(grant: Grant, answer: Answer, terms: SettleTerms, sender: Sender): SettleOperation {
  const { start, place, facts } = grant;
  const keys = facts.plan.keys.map((_, index) => settleKey(grant, index, answer, terms));
  return {
    kind: "settle",
    ...sender,
    startedUs: start.startedUs,
    grantedUs: facts.grantedUs,
    place,
    isOver: terms.isOver,
    isUnused: answer.kind === "unused",
    keys,
  };
}

function settleKey(grant: Grant, index: number, answer: Answer, terms: SettleTerms): SettleKey {
  const { rule, ruleId } = grant.facts.plan.keys[index];
  const taken = costAt(grant.facts.cost, index);
  const spent = answer.kind === "unused" ? NOTHING : terms.cost === undefined ? taken : costAt(terms.cost, index);
  return {
    ruleId,
    unitsAfter: grant.start.unitsAfter[index],
    previousUs: grant.start.previousUs[index],
    back: { rate: taken.rate - spent.rate, window: taken.window - spent.window, quota: taken.quota - spent.quota },
    windowUnits: spent.window,
    answer: noteOf(answer, index === terms.heldAt, terms.random),
    cooldownUs: rule.cooldownUs,
    backoff: rule.backoff,
    isHeld: rule.enabled,
  };
}

/** What one key hears: the one that is held hears it all, the others a success or that their probe is back. */
function noteOf(answer: Answer, isHeld: boolean, random: number): AnswerNote {
  const { budget } = answer;
  const isShort = !isHeld && answer.kind !== "unused" && answer.kind !== "success";
  return {
    kind: isShort ? "neutral" : answer.kind,
    retryAfterUs: isHeld ? answer.retryAfterUs : 0,
    random,
    because: isHeld ? (budget?.because ?? answer.because) : "",
    remaining: isHeld && budget !== undefined ? budget.remaining : -1,
    resetUs: isHeld && budget !== undefined ? budget.resetUs : 0,
  };
}

/** Whether an answer changes anything in the store. */
function isNew(answer: Answer, grant: Grant): boolean {
  if (answer.kind === "neutral" || answer.kind === "success")
    return answer.budget !== undefined || grant.facts.isCooling;
  return true;
}

/** What the books of this process learn: how it ended, but nothing that would hold anybody here. */
function localOutcome(answer: Answer): Outcome | undefined {
  const { kind, latencyUs, scope, because } = answer;
  if (kind === "neutral") return undefined;
  return {
    kind,
    because,
    ...(latencyUs === undefined ? {} : { latencyMs: latencyUs / 1000 }),
    ...(scope === undefined ? {} : { scope }),
  };
}

/** The same for a request that was only recorded, where an outcome is a must. */
export function recordedOutcome(answer: Answer): Outcome {
  return localOutcome(answer) ?? { status: NOT_FOUND };
}

/** An answer that means nothing to limits. */
const NOT_FOUND = 404;

/** A random number as promised, whatever was delivered: jitter must not shorten anything. */
function withinOne(random: () => number): number {
  try {
    const number = random();
    return number >= 0 && number < 1 ? number : 0;
  } catch {
    return 0;
  }
}
