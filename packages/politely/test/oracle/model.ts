import { fitsAt } from "./fitsAt.js";
import { defaultHoldRules, type HoldRules, type HostLogEntry, incidentReadyAt } from "./incident.js";
import { type Ask, type Ending, pickFrom, type Script, type Step } from "./script.js";
import { defaultHoldUs, hourUs, type LimitSpec } from "./spec.js";
import type { Start } from "./trace.js";
import { answeredUs } from "./violations.js";

/** One request and what became of it, by the model. */
export interface ModelCall {
  readonly id: number;
  readonly ask: Ask;
  readonly arrivedUs: number;
  fate: "waiting" | "started" | "cancelled" | "expired" | "refused";
  startedUs?: number;
  releasedUs?: number;
  ending?: Ending;
  /** When it was cancelled, refused or expired. */
  leftUs?: number;
}

/** What the model plays, beside the script. */
export interface ModelSetup {
  /** Several where the script configures; the first one holds from the start. */
  readonly specs: readonly LimitSpec[];
  readonly ageingUs?: number;
  readonly holds?: HoldRules;
  /** Wall time of instant 0, for the quota. */
  readonly wallUs?: number;
  /** Requests known to have been refused when they came; they take nothing and stand in nobody's way. */
  readonly refused?: ReadonlySet<number>;
}

/**
 * Plays a script for one key without shared scopes and says when each request starts.
 *
 * At every step each limit is worked out again from all starts there have ever been. Nothing is remembered between
 * steps but the list of requests itself, and the earliest start is found by trying every instant at which anything changes.
 */
export function playModel(script: Script, setup: ModelSetup): ModelCall[] {
  const model = new Model(setup);
  for (const { afterUs, step } of script) {
    model.passUntil(model.nowUs + afterUs);
    model.take(step);
    model.passUntil(model.nowUs);
  }
  return model.calls;
}

class Model {
  nowUs = 0;
  readonly calls: ModelCall[] = [];
  readonly #setup: ModelSetup;
  readonly #log: HostLogEntry[] = [];
  #spec: LimitSpec;

  constructor(setup: ModelSetup) {
    this.#setup = setup;
    this.#spec = setup.specs[0];
  }

  /** Lets everything happen that happens by itself up to and at `untilUs`: starts first, then deadlines. */
  passUntil(untilUs: number): void {
    for (;;) {
      const head = this.#head();
      if (head === undefined) break;
      const startUs = this.#earliestStart(head);
      const deadlines = this.#waiting().map((call) => deadlineUs(call));
      const expiryUs = Math.min(...deadlines);
      if (startUs <= untilUs && startUs <= expiryUs) {
        this.nowUs = startUs;
        this.#start(head);
      } else if (expiryUs <= untilUs) {
        this.nowUs = expiryUs;
        const late = this.#waiting().filter((call) => deadlineUs(call) === expiryUs);
        for (const call of late) leave(call, "expired", expiryUs);
      } else break;
    }
    this.nowUs = untilUs;
  }

  take(step: Step): void {
    if (step.kind === "acquire") {
      const id = this.calls.length;
      const call: ModelCall = { id, ask: step.ask, arrivedUs: this.nowUs, fate: "waiting" };
      this.calls.push(call);
      if (this.#setup.refused?.has(id) === true) leave(call, "refused", this.nowUs);
    } else if (step.kind === "cancel") {
      const call = pickFrom(this.#waiting(), step.pick);
      if (call !== undefined) leave(call, "cancelled", this.nowUs);
    } else if (step.kind === "release") {
      const call = pickFrom(this.#inFlight(), step.pick);
      if (call !== undefined) this.#release(call, step.ending);
    } else if (step.kind === "releaseAll") {
      for (const call of this.#inFlight()) {
        this.#release(call, { kind: "neutral" });
        this.passUntil(this.nowUs);
      }
    } else if (step.kind === "configure") {
      this.#spec = this.#setup.specs[step.policy];
    } else if (step.kind !== "look" && step.kind !== "wall") {
      throw new Error(`the model does not know the step "${step.kind}"`);
    }
  }

  #head(): ModelCall | undefined {
    const ageing = BigInt(this.#setup.ageingUs ?? 10_000_000);
    // priority + waited / ageing, times ageing, without the part that is the same for everybody.
    const order = (call: ModelCall): bigint => BigInt(call.ask.priority ?? 0) * ageing - BigInt(call.arrivedUs);
    return this.#waiting().reduce<ModelCall | undefined>(
      (best, call) => (best === undefined || order(call) > order(best) ? call : best),
      undefined,
    );
  }

  #start(call: ModelCall): void {
    call.fate = "started";
    call.startedUs = this.nowUs;
    this.#log.push({ what: "start", id: call.id, atUs: this.nowUs });
  }

  #release(call: ModelCall, ending: Ending): void {
    call.releasedUs = this.nowUs;
    call.ending = ending;
    this.#log.push({ what: "end", id: call.id, atUs: this.nowUs, startedUs: startOf(call), ending });
  }

  #waiting(): ModelCall[] {
    return this.calls.filter((call) => call.fate === "waiting");
  }

  #inFlight(): ModelCall[] {
    return this.calls
      .filter((call) => call.fate === "started" && call.releasedUs === undefined)
      .sort((a, b) => startOf(a) - startOf(b) || a.id - b.id);
  }

  /** Tries every instant at which something changes, from now on. Infinity: only an answer can help. */
  #earliestStart(call: ModelCall): number {
    const floorUs = Math.max(this.nowUs, incidentReadyAt(this.#log, this.#setup.holds ?? defaultHoldRules));
    const instants = this.#changesFor(call.ask.cost).filter((atUs) => atUs > floorUs);
    instants.sort((a, b) => a - b);
    const question = {
      spec: this.#spec,
      starts: this.#started(),
      cost: call.ask.cost,
      wallUs: this.#setup.wallUs ?? 0,
    };
    return [floorUs, ...new Set(instants)].find((atUs) => fitsAt({ ...question, atUs })) ?? Number.POSITIVE_INFINITY;
  }

  #changesFor(cost: number): number[] {
    const { gapUs, rate, windows = [], hourQuota, maxHoldUs = defaultHoldUs } = this.#spec;
    const started = this.#started();
    const instants: number[] = [];
    for (const [index, start] of started.entries()) {
      const endedUs = answeredUs(start, maxHoldUs);
      instants.push(endedUs);
      for (const spanUs of [gapUs ?? 0, ...windows.map(({ perUs }) => perUs)])
        instants.push(start.atUs + spanUs, endedUs + spanUs);
      if (rate === undefined) continue;
      const units = started.slice(index).reduce((total, { cost: units }) => total + units, cost);
      const excess = BigInt(units - rate.burst) * BigInt(rate.perUs);
      if (excess > 0n) instants.push(start.atUs + Number((excess + BigInt(rate.count) - 1n) / BigInt(rate.count)));
    }
    if (hourQuota !== undefined) {
      const wallUs = this.#setup.wallUs ?? 0;
      instants.push((Math.floor((wallUs + this.nowUs) / hourUs) + 1) * hourUs - wallUs);
    }
    return instants;
  }

  #started(): Start[] {
    return this.calls
      .filter((call) => call.fate === "started")
      .map((call) => ({
        atUs: startOf(call),
        cost: call.ask.cost,
        releasedUs: call.releasedUs,
        unused: call.ending?.kind === "unused",
      }))
      .sort((a, b) => a.atUs - b.atUs);
  }
}

function startOf(call: ModelCall): number {
  return call.startedUs ?? Number.NaN;
}

function deadlineUs(call: ModelCall): number {
  return call.arrivedUs + (call.ask.maxWaitUs ?? Number.POSITIVE_INFINITY);
}

function leave(call: ModelCall, fate: "cancelled" | "expired" | "refused", atUs: number): void {
  call.fate = fate;
  call.leftUs = atUs;
}
