import { ClosedError, DeadlineError } from "../../errors.js";
import type { Permit, Target } from "../../types.js";
import type { Outlook, StartsAside } from "../counsel.js";
import type { Demand } from "../demand.js";
import { describeCause, earliestUs, keyName, reasonOf } from "../forecast.js";
import type { LaneCost } from "../lane.js";
import type { Broker } from "./broker.js";
import { readToldStop } from "./outlook.js";
import type { Plan } from "./plan.js";
import type { Taken } from "./questions.js";
import type { Grant } from "./run.js";
import { runOf } from "./runOf.js";
import { unlessAborted } from "./unlessAborted.js";

/** What came of asking once: a permit, or what the store said is in the way; neither when this process knew better than to ask. */
interface AskedOnce {
  readonly permit?: Permit;
  readonly stop?: Outlook;
  /** When the answer was read. */
  readonly nowUs: number;
}

/** What the store said to that. */
interface TakenNow {
  readonly plan: Plan;
  readonly taken: Taken;
  readonly grant: Grant | undefined;
}

/** Starts that are asked for beside the queue, once: now or not at all. The way to the store takes a moment, which is no wait. */
export class Aside implements StartsAside {
  constructor(readonly broker: Broker) {}

  /** The permit of a start that is possible now; undefined, and counted as refused with that code, when there is none. */
  async tryStart(target: Target, demand: Demand, cost: LaneCost): Promise<Permit | undefined> {
    return (await this.#askOnce(target, demand, cost, "POLITELY_BUSY")).permit;
  }

  /** The permit of a start that is possible now. Rejects with a `DeadlineError` that says what is in the way, or with the signal's reason. */
  async start(target: Target, demand: Demand, cost: LaneCost, signal: AbortSignal | undefined): Promise<Permit> {
    const asking = this.#askOnce(target, demand, cost, "POLITELY_DEADLINE");
    const { permit, stop, nowUs } = await (signal === undefined ? asking : unlessAborted(asking, signal));
    if (permit !== undefined) return permit;
    const { engine } = this.broker.parts;
    if (stop === undefined) {
      const waitMs = (earliestUs(engine, demand, cost, nowUs) - nowUs) / 1000;
      throw new DeadlineError(demand.key, waitMs, reasonOf(engine, demand, cost, nowUs), 0);
    }
    const { waitMs, message } = describeCause(stop, {
      scope: demand.scopeNames[stop.index],
      key: keyName(demand, stop.index),
      rule: this.broker.questions.planOf(demand).keys[stop.index].rule,
      because: stop.because === "" ? undefined : stop.because,
      words: stop.words,
      nowUs,
    });
    throw new DeadlineError(demand.key, waitMs, message, 0);
  }

  async #askOnce(target: Target, demand: Demand, cost: LaneCost, code: string): Promise<AskedOnce> {
    const { broker } = this;
    const { engine } = broker.parts;
    const asking = this.#isFirst(demand) ? this.#take(demand, cost) : undefined;
    if (asking !== undefined) broker.track(asking);
    const asked = await asking;
    if (asked?.grant !== undefined && engine.isClosed) {
      await broker.parts.settler.giveBackOne(asked.grant);
      throw new ClosedError(demand.key);
    }
    const nowUs = engine.nowUs();
    const demandNow = engine.demand(target, nowUs);
    if (asked?.grant !== undefined) return { permit: broker.grantAside(demandNow, cost, asked.grant), nowUs };
    engine.departures.refuse(demandNow, nowUs, code, cost);
    const stop =
      asked === undefined
        ? undefined
        : readToldStop(broker.parts, { plan: asked.plan, spec: demand }, asked.taken, nowUs);
    return stop === undefined ? { nowUs } : { stop, nowUs };
  }

  /** Asks for one start; no grant when there is none. Rejects as the outage policy says. */
  async #take(spec: Demand, cost: LaneCost): Promise<TakenNow> {
    const { parts, questions } = this.broker;
    const plan = questions.planOf(spec);
    const terms = { count: 1, horizonUs: 0, ticket: "", turnUs: 0, joinedUs: 0, hasMore: false };
    const taken = await questions.take(plan, spec, cost, { ...terms, member: questions.memberName(plan) });
    if (taken.reply.fleet > 0) parts.standby.learn(taken.reply.fleet);
    if (taken.reply.starts.length === 0) return { plan, taken, grant: undefined };
    const run = runOf(parts, { key: spec.key, plan, cost }, taken);
    if (!run.isLate) return { plan, taken, grant: run.take(run.readyUs) };
    this.broker.track(parts.settler.giveBack(run));
    return { plan, taken, grant: undefined };
  }

  /** Whether nothing in this process is in the way: those who wait in the same lane, a pause, or what robots.txt asks. */
  #isFirst({ name, slots }: Demand): boolean {
    const { engine } = this.broker.parts;
    const { queue, ledger } = engine;
    const nowUs = engine.nowUs();
    if (queue.lanes.has(name) || queue.pausedUntilUs > nowUs) return false;
    return slots.every((slot) => ledger.readyAt(slot, nowUs) <= nowUs);
  }
}
