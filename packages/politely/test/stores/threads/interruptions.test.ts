import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SharedLog } from "../../../src/stores/sharedLog.js";
import { seeded } from "../../laws/seeded.js";
import { accounts, amountOf, moveOne, openAccounts, total } from "./accounts.js";
import { apply, isCopying, look, newLog } from "./play.js";
import { endedAt, pausedAt } from "./stepping.js";

/** What happens to a thread in the middle of a change. */
interface Interruption {
  /** After so many steps of it. */
  readonly atStep: number;
  /** It is ended, or stands still while others go on. */
  readonly isEnd: boolean;
  /** Changes that others make then. They take its turn away. */
  readonly others: readonly Move[];
}

interface Move {
  readonly pair: readonly number[];
  readonly padding: number;
}

/** One thing that a thread does. Without a move it looks. */
interface Deed {
  readonly isSteady: boolean;
  readonly move: Move | undefined;
  readonly interruption: Interruption | undefined;
}

const anyMove: fc.Arbitrary<Move> = fc.record({
  // Two accounts are changed most of the time, so that the others get old.
  pair: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom([0, 1], [1, 0]) },
    { weight: 1, arbitrary: fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 2, maxLength: 2 }) },
  ),
  padding: fc.oneof({ weight: 2, arbitrary: fc.nat(40) }, { weight: 1, arbitrary: fc.nat(1_300) }),
});

const anyInterruption: fc.Arbitrary<Interruption> = fc.record({
  atStep: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 400 })),
  isEnd: fc.boolean(),
  // Some go round the ring several times.
  others: fc.oneof(
    fc.constant([]),
    fc.array(anyMove, { maxLength: 5 }),
    fc.array(anyMove, { minLength: 40, maxLength: 120, size: "max" }),
  ),
});

const anyDeed: fc.Arbitrary<Deed> = fc.record({
  isSteady: fc.boolean(),
  move: fc.option(anyMove, { nil: undefined, freq: 4 }),
  interruption: fc.option(anyInterruption, { nil: undefined, freq: 3 }),
});

/** Cells that nobody changes. The ring has to be gone round with them. */
const cold = Array.from({ length: 60 }, (_, index) => `cold:${index}`);
const coldValues = cold.map((key) => key.repeat(25));

/** Threads over one memory, played one after the other. One of them is interrupted again and again. */
class World {
  private readonly memory = new SharedArrayBuffer(65_536);
  private readonly steady = newLog(this.memory);
  private victim = newLog(this.memory);

  constructor() {
    apply(this.steady, accounts, () => openAccounts());
    cold.forEach((key, at) => {
      apply(this.steady, [key], () => [{ index: 0, value: coldValues[at], ttlUs: 3_600_000_000_000 }]);
    });
  }

  /** A victim that is ended is followed by another one. */
  play({ isSteady, move, interruption }: Deed): void {
    if (isSteady || interruption === undefined) this.act(isSteady ? this.steady : this.victim, move);
    else if (interruption.isEnd) {
      if (endedAt(interruption.atStep, () => this.act(this.victim, move))) this.victim = newLog(this.memory);
      for (const other of interruption.others) this.act(this.steady, other);
    } else {
      const others = (): void => {
        if (isCopying(this.steady)) return;
        for (const other of interruption.others) this.act(this.steady, other);
      };
      pausedAt(interruption.atStep, () => this.act(this.victim, move), others);
    }
  }

  /** A thread that is new, one that was there all the time, and one that was interrupted. */
  logs(): SharedLog[] {
    return [newLog(this.memory), this.steady, this.victim];
  }

  private act(log: SharedLog, move: Move | undefined): void {
    if (move !== undefined) {
      const keys = move.pair.map((index) => accounts[index]);
      apply(log, keys, (values) => moveOne(values, move.padding));
      return;
    }
    const sum = total(look(log, accounts));
    if (sum !== 500) throw new Error(`A thread saw a sum of ${sum}.`);
  }
}

describe("a shared log", () => {
  it("keeps its sums and all else, and goes on, whenever a thread is ended or stands still in the middle of a change", () => {
    fc.assert(
      fc.property(fc.array(anyDeed, { minLength: 1, maxLength: 100, size: "max" }), (deeds) => {
        const world = new World();
        for (const deed of deeds) world.play(deed);
        for (const log of world.logs()) {
          expect(total(look(log, accounts))).toBe(500);
          expect(look(log, cold)).toEqual(coldValues);
        }
      }),
      seeded(200),
    );
  });

  it("carries out a change once, at whichever step another thread takes the turn away", () => {
    let at = 1;
    for (let isPaused = true; isPaused; at++) {
      const { memory, other } = openedLog();
      const log = newLog(memory);
      let isWaiting = false;
      isPaused = pausedAt(
        at,
        () => apply(log, accounts.slice(0, 2), (values) => moveOne(values, 3)),
        () => {
          // Others do not take a turn away so soon from a thread that copies.
          isWaiting = isCopying(other);
          if (!isWaiting) apply(other, accounts.slice(2, 4), (values) => moveOne(values, 3));
        },
      );
      const moved = isPaused && !isWaiting ? [99, 101] : [100, 100];
      expect(look(other, accounts).map(amountOf)).toEqual([99, 101, ...moved, 100]);
    }
    expect(at).toBeGreaterThan(15);
  });

  it("carries out a change once, when another thread has waited for too long and takes the turn away from one that has copied", () => {
    const copyingAt: number[] = [];
    const moveAt = (atStep: number, others: (other: SharedLog) => void): (string | undefined)[] => {
      const { memory, other } = openedLog();
      const move = (): void => apply(newLog(memory), accounts.slice(0, 2), (values) => moveOne(values, 3));
      pausedAt(atStep, move, () => others(other));
      return [...look(other, accounts)];
    };
    for (let at = 1; at < 100; at++) moveAt(at, (other) => isCopying(other) && copyingAt.push(at));
    // The last step of copying is the exchange of the state.
    const values = moveAt(Math.max(...copyingAt), (other) => {
      apply(other, accounts.slice(2, 4), (found) => moveOne(found, 3));
    });
    expect(values.map(amountOf)).toEqual([99, 101, 99, 101, 100]);
  });

  it("has the old cells or the new ones, at whichever step a thread is ended", () => {
    const seen = new Set<string>();
    for (let at = 1, isEnded = true; isEnded; at++) {
      const { memory, other } = openedLog();
      const log = newLog(memory);
      isEnded = endedAt(at, () => apply(log, accounts.slice(0, 2), (values) => moveOne(values, 3)));
      apply(other, accounts.slice(2, 4), (values) => moveOne(values, 3));
      const amounts = look(newLog(memory), accounts).map(amountOf);
      expect(amounts.slice(2)).toEqual([99, 101, 100]);
      seen.add(amounts.slice(0, 2).join());
    }
    expect(seen).toEqual(new Set(["100,100", "99,101"]));
  });

  it("shows nothing that was overwritten while it was read", () => {
    for (let at = 1, isPaused = true; isPaused; at++) {
      const { memory, other } = openedLog();
      const log = newLog(memory);
      isPaused = pausedAt(
        at,
        () => expect(total(look(log, accounts))).toBe(500),
        () => goRound(other),
      );
      expect(look(log, accounts)).toEqual(look(other, accounts));
    }
  });

  it("loses nothing at whichever step a thread is ended that moves what still counts", () => {
    for (let at = 1, isEnded = true; isEnded; at += 7) {
      const { memory, other } = openedLog();
      cold.forEach((key, index) => {
        apply(other, [key], () => [{ index: 0, value: coldValues[index], ttlUs: 3_600_000_000_000 }]);
      });
      const log = newLog(memory);
      isEnded = endedAt(at, () => goRound(log));
      goRound(other);
      expect(look(newLog(memory), cold)).toEqual(coldValues);
      expect(total(look(other, accounts))).toBe(500);
    }
  });
});

/** A memory with accounts, and a thread that opened them. */
function openedLog(): { readonly memory: SharedArrayBuffer; readonly other: SharedLog } {
  const memory = new SharedArrayBuffer(65_536);
  const other = newLog(memory);
  apply(other, accounts, () => openAccounts());
  return { memory, other };
}

/** Writes until every byte that may be used has been used. */
function goRound(log: SharedLog): void {
  for (let count = 0; count < 120; count++) apply(log, accounts.slice(0, 2), (values) => moveOne(values, 200));
}
