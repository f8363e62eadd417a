import { StoreError } from "../../errors.js";
import type { Sender, TakeOperation, TakeReply } from "../../shared/operation.js";
import type { Engine } from "../engine.js";
import type { LaneCost, LaneSpec } from "../lane.js";
import { AskedKeys, type TakeTerms, takeOperation } from "./askFor.js";
import { leaveFleet } from "./leaveFleet.js";
import type { Link } from "./link.js";
import { HORIZON_US, type Plan, planOf } from "./plan.js";
import type { RunFacts } from "./run.js";
import type { Standby } from "./standby.js";

/** Plans that are kept, at most. */
const PLANS_MOST = 10_000;
/** How often a process says that it is there, when it asks anyway: twice as long after each time, since many may start together. */
const MEMBER_FIRST_US = 250_000;
const MEMBER_MOST_US = 30_000_000;
/** How often the calendar is asked for again when the store says that it is another day. */
const STALE_MOST = 3;

/** How the store is asked. */
export interface QuestionOptions {
  readonly outage: "share" | "closed" | "open";
  readonly isBatch: boolean;
  readonly process: string;
  /** Before the names of all keys in the store. */
  readonly name: string;
}

/** What questions are asked with. */
export interface QuestionParts {
  readonly engine: Engine;
  readonly link: Link;
  readonly standby: Standby;
  readonly options: QuestionOptions;
}

/** A take, answered, and by whom. */
export interface Taken {
  readonly reply: TakeReply;
  readonly origin: RunFacts["origin"];
  readonly asker: { readonly asker: string; readonly sequence: number };
  /** How long the answer took, all tries together: at most so old are the starts in it. */
  readonly tookUs: number;
}

/** Puts questions to the store, or to what stands in for it while it is away. */
export class Questions {
  readonly #plans = new Map<string, Plan>();
  readonly #keys = new AskedKeys();
  /** When this process is to say at a key again that it is there, and how long after the time before that is. */
  readonly #says = new Map<string, { readonly atUs: number; readonly afterUs: number }>();
  #away = 0;
  /** Set while this process takes leave of its keys. */
  #leaving: Promise<void> | undefined = undefined;

  constructor(
    readonly parts: QuestionParts,
    /** A question that was given up was answered after all: what it took has to go back. */
    readonly onLate: (plan: Plan, spec: LaneSpec, cost: LaneCost, taken: Taken) => void,
  ) {}

  /** The policy has changed: what was worked out from the old one is forgotten, and the fleet is left. Nothing is asked before that is done, else what is asked would be left, too. */
  configured(): Promise<void> {
    this.#plans.clear();
    const leaving = leaveFleet(this).then(() => {
      if (this.#leaving === leaving) this.#leaving = undefined;
    });
    this.#leaving = leaving;
    return leaving;
  }

  /** The plan of a lane. */
  planOf(spec: LaneSpec): Plan {
    let plan = this.#plans.get(spec.name);
    if (plan === undefined) {
      if (this.#plans.size >= PLANS_MOST) this.#plans.clear();
      plan = planOf(this.parts.engine.policy, spec, this.parts.options);
      this.#plans.set(spec.name, plan);
    }
    return plan;
  }

  /** The keys of a lane, in the form that stores take. */
  async keysOf(spec: LaneSpec, cost: LaneCost): Promise<ReturnType<AskedKeys["of"]>> {
    if (this.planOf(spec).hasQuota) await this.parts.link.meet();
    return this.keysNow(spec, cost);
  }

  /** The same, as far as the store's time is known already. */
  keysNow(spec: LaneSpec, cost: LaneCost): ReturnType<AskedKeys["of"]> {
    const plan = this.planOf(spec);
    const { engine, link } = this.parts;
    const storeUs = engine.nowUs() + (link.offsetUs ?? 0);
    const { timeline } = link.parts.store;
    const isEpoch = timeline === "epoch" && link.offsetUs !== undefined;
    const wallMs = isEpoch ? storeUs / 1000 : engine.clock.wall();
    const slowUs = spec.slots.map((slot) => this.#slowUs(slot));
    return this.#keys.of(plan, cost, { wallMs, storeUs, timeline, slowUs });
  }

  /** How long before its turn a lane asks: so that the question is there in time. */
  leadUs(): number {
    return Math.min(HORIZON_US - 500, Math.max(this.parts.link.roundTripUs + 500, HORIZON_US / 2));
  }

  /** The name of this process when it is time to say at these keys that it is there; else empty. */
  memberName({ storeKeys }: Plan): string {
    const nowUs = this.parts.engine.nowUs();
    if (storeKeys.every((key) => nowUs < (this.#says.get(key)?.atUs ?? nowUs))) return "";
    if (this.#says.size >= PLANS_MOST) this.#says.clear();
    for (const key of storeKeys) {
      const afterUs = Math.min(MEMBER_MOST_US, 2 * (this.#says.get(key)?.afterUs ?? MEMBER_FIRST_US / 2));
      // At the end, also where it is known.
      this.#says.delete(key);
      this.#says.set(key, { atUs: nowUs + afterUs, afterUs });
    }
    return this.parts.options.process;
  }

  /** The keys at which this process has said that it is there, the latest last. It is as if it had not, from now on. */
  takeSaid(): string[] {
    const said = [...this.#says.keys()];
    this.#says.clear();
    return said;
  }

  /** Asks for starts. Rejects with `StoreError` when the store cannot be asked, and the outage policy says so. */
  async take(plan: Plan, spec: LaneSpec, cost: LaneCost, terms: TakeTerms): Promise<Taken> {
    const { link, standby, options } = this.parts;
    while (this.#leaving !== undefined) await this.#leaving;
    for (let stale = 0; ; ) {
      let sender = { asker: "", sequence: 0 };
      try {
        const keys = await this.keysOf(spec, cost);
        const askedUs = this.parts.engine.nowUs();
        const make = (by: Sender): TakeOperation => {
          sender = by;
          return takeOperation(plan, keys, terms, by);
        };
        const late = (reply: TakeReply): void =>
          this.onLate(plan, spec, cost, { reply, origin: "store", asker: sender, tookUs: 0 });
        const reply = await link.sendOrUndo(plan.storeKeys, make, late);
        if (!reply.isStalePeriod) {
          const nowUs = this.parts.engine.nowUs();
          standby.recollection.heard(plan, cost, reply, nowUs);
          return { reply, origin: "store", asker: sender, tookUs: nowUs - askedUs };
        }
        stale += 1;
        this.#keys.forgetPeriods();
        if (stale > STALE_MOST) throw wrongCalendar(spec.key);
      } catch (error) {
        const isAway = error instanceof StoreError && !error.isLasting;
        if (!isAway || options.outage === "closed") throw error;
        // Names of places must differ from those in the store.
        const by = { asker: `${options.process}:away`, sequence: ++this.#away };
        const keys = this.ownKeys(spec, cost, plan);
        const operation = takeOperation(plan, keys, terms, by);
        const isOpen = options.outage === "open";
        const note = { plan, cost, keysNow: () => this.keysNow(spec, cost) };
        const reply = isOpen ? standby.open(note, operation) : await standby.share(note, operation);
        return { reply, origin: isOpen ? "open" : "share", asker: by, tookUs: 0 };
      }
    }
  }

  /** The keys of a lane for what stands in for the store, on this process's clock. */
  ownKeys(spec: LaneSpec, cost: LaneCost, plan = this.planOf(spec)): ReturnType<AskedKeys["of"]> {
    const { engine } = this.parts;
    const slowUs = spec.slots.map((slot) => this.#slowUs(slot));
    const context = { wallMs: engine.clock.wall(), storeUs: engine.nowUs(), timeline: "machine", slowUs } as const;
    return this.#keys.of(plan, cost, context);
  }

  #slowUs(slot: number): number {
    const { slowdowns } = this.parts.engine.ledger;
    const robots = slowdowns.get(slot, "robots")?.gapUs ?? 0;
    return Math.max(robots, slowdowns.get(slot, "adaptive")?.gapUs ?? 0);
  }
}

function wrongCalendar(key: string): StoreError {
  return new StoreError(`The store's calendar period for "${key}" keeps changing. Look at the clock of its server.`);
}
