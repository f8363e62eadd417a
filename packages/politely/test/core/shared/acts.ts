import fc, { type Arbitrary } from "fast-check";
import type { AnswerNote, TakeKey } from "../../../src/shared/operation.js";
import { settleOf, startsOf, type TakenStart, takeOf } from "../../../src/testing/store/operations.js";
import { spanUs } from "../../laws/arbitraries.js";
import { pickFrom } from "../../oracle/script.js";
import type { Place } from "./place.js";

/** Anything that can be asked about one key, drawn at random. */
export type Act =
  | { readonly act: "wait"; readonly us: number }
  | {
      readonly act: "take";
      readonly policy: number;
      readonly ticket: string;
      readonly count: number;
      readonly horizonUs: number;
      readonly slowUs: number;
      readonly member: string;
      readonly leaseUs: number;
    }
  | {
      readonly act: "settle";
      readonly pick: number;
      readonly kind: AnswerNote["kind"];
      readonly retryAfterUs: number;
      readonly remaining: number;
      readonly resetUs: number;
      readonly isOver: boolean;
    }
  | { readonly act: "renew"; readonly pick: number; readonly leaseUs: number }
  | { readonly act: "leave"; readonly ticket: string }
  | { readonly act: "record"; readonly policy: number; readonly agesUs: readonly number[] }
  | { readonly act: "set"; readonly pauseUs: number; readonly reset: "nothing" | "pacing" | "all" };

const anyTicket = fc.constantFrom("", "one", "two", "three");

/** A random act. `policies` says how many rules there are to choose from. */
export function anyAct(policies: number): Arbitrary<Act> {
  const policy = fc.nat({ max: policies - 1 });
  const pick = fc.nat({ max: 9 });
  const acts: { readonly weight: number; readonly arbitrary: Arbitrary<Act> }[] = [
    {
      weight: 7,
      arbitrary: fc.record({ act: fc.constant("wait" as const), us: fc.oneof(spanUs(60), spanUs(20_000)) }),
    },
    {
      weight: 12,
      arbitrary: fc.record({
        act: fc.constant("take" as const),
        policy,
        ticket: anyTicket,
        count: fc.constantFrom(1, 1, 2, 4),
        horizonUs: fc.constantFrom(0, 0, 50_000),
        slowUs: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: spanUs(200_000) }),
        member: fc.constantFrom("", "", "north", "south"),
        leaseUs: fc.constantFrom(1_000_000, 30_000_000, 300_000_000),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        act: fc.constant("settle" as const),
        pick,
        kind: fc.constantFrom<AnswerNote["kind"]>("success", "neutral", "unused", "rate_limited", "server_error"),
        retryAfterUs: fc.oneof(fc.constant(0), spanUs(90_000)),
        remaining: fc.constantFrom(-1, -1, 0, 1, 20),
        resetUs: spanUs(90_000),
        isOver: fc.constantFrom(true, true, false),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        act: fc.constant("renew" as const),
        pick,
        leaseUs: fc.constantFrom(1_000_000, 30_000_000),
      }),
    },
    { weight: 1, arbitrary: fc.record({ act: fc.constant("leave" as const), ticket: anyTicket }) },
    {
      weight: 1,
      arbitrary: fc.record({
        act: fc.constant("record" as const),
        policy,
        agesUs: fc.array(spanUs(5_000), { minLength: 1, maxLength: 3 }).map((ages) => ages.sort((a, b) => b - a)),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        act: fc.constant("set" as const),
        pauseUs: fc.oneof(fc.constantFrom(-1, 0, 0), spanUs(90_000)),
        reset: fc.constantFrom("nothing" as const, "nothing" as const, "pacing" as const, "all" as const),
      }),
    },
  ];
  return fc.oneof(...acts);
}

/** Somebody who acts at one key of a place, and remembers what is open and what was told. */
export class Actor {
  readonly open: TakenStart[] = [];
  /** Every reply, without what only the store understands. */
  readonly replies: unknown[] = [];
  readonly #turns = new Map<string, { readonly turnUs: number; readonly joinedUs: number }>();

  constructor(
    readonly place: Place,
    readonly rules: readonly TakeKey[],
  ) {}

  play(acts: readonly Act[]): this {
    for (const act of acts) this.#do(act);
    return this;
  }

  #do(act: Act): void {
    const { place } = this;
    const names = ["host"];
    if (act.act === "wait") place.wait(act.us);
    else if (act.act === "take") this.#take(act);
    else if (act.act === "settle") this.#settle(act);
    else if (act.act === "renew") {
      const places = this.open.slice(0, 1 + act.pick).map((taken) => taken.place);
      const { lost } = place.send(names, { kind: "renew", ...place.from(), places, leaseUs: act.leaseUs });
      this.replies.push(lost.map((name) => places.indexOf(name)));
    } else if (act.act === "leave") place.send(names, { kind: "leave", ...place.from(), ticket: act.ticket });
    else if (act.act === "record") {
      const keys = [this.rules[act.policy]];
      place.send(names, { kind: "record", ...place.from(), keys, agesUs: act.agesUs });
    } else {
      place.send(names, { kind: "set", ...place.from(), pauseUs: act.pauseUs, reset: act.reset });
      // A start at the very instant of a reset, or granted ahead of it, cannot be told from one before it.
      place.wait(100_000);
    }
  }

  #take({ policy, ticket, ...terms }: Extract<Act, { act: "take" }>): void {
    const { place } = this;
    const told = this.#turns.get(ticket);
    const key = { ...this.rules[policy], slowUs: terms.slowUs };
    const { count, horizonUs, member, leaseUs } = terms;
    const line = { ticket, turnUs: told?.turnUs ?? 0, joinedUs: told?.joinedUs ?? 0 };
    const operation = takeOf(place.from(), [key], { count, horizonUs, member, leaseUs, ...line });
    const reply = place.send(["host"], operation);
    const { starts, stop } = reply;
    this.open.push(...startsOf(operation, reply));
    if (stop === undefined || ticket === "") this.#turns.delete(ticket);
    else {
      const isNew = told === undefined || starts.length > 0;
      this.#turns.set(ticket, { turnUs: stop.turnUs, joinedUs: isNew ? reply.nowUs : told.joinedUs });
    }
    this.replies.push({ ...reply, starts: starts.map(({ startedUs }) => startedUs) });
  }

  #settle({ pick, isOver, ...given }: Extract<Act, { act: "settle" }>): void {
    const { place, open } = this;
    // What was never sent has no answer that could tell of a budget.
    const answer = given.kind === "unused" ? { ...given, remaining: -1 } : given;
    const taken = pickFrom(
      open.filter(({ start }) => answer.kind === "unused" || start.startedUs <= place.nowUs),
      pick,
    );
    if (taken === undefined) return;
    if (isOver || answer.kind === "unused") open.splice(open.indexOf(taken), 1);
    const isUnused = answer.kind === "unused";
    const operation = settleOf(place.from(), taken, { answer, isUnused, isOver: isOver || isUnused });
    this.replies.push(place.send(["host"], operation));
  }
}
