import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LEAST_BYTES, type Memory, openMemory } from "../../../src/stores/threads/memory.js";
import { Ring } from "../../../src/stores/threads/ring.js";
import { SharedLog } from "../../../src/stores/threads/sharedLog.js";
import { seeded } from "../../laws/seeded.js";
import { accounts, amountOf, moveOne, openAccounts, total } from "./accounts.js";
import { apply, look } from "./play.js";
import { SteppedRing } from "./steppedRing.js";

/** What happens to a thread in the middle of a change. */
interface Interruption {
  /** After so many steps of it. */
  readonly afterSteps: number;
  /** It is ended, or stands still while others go on. */
  readonly isEnd: boolean;
  /** Changes that others make meanwhile. They give up what it had reserved. */
  readonly others: readonly Move[];
  /** Time that passes meanwhile: less than an abandoned record is left alone for. */
  readonly pausedMs: number;
}

interface Move {
  readonly pair: readonly number[];
  readonly padding: number;
}

/** One thing that a thread does. */
type Deed =
  | { readonly by: "steady" | "victim"; readonly move: Move }
  | { readonly by: "victim"; readonly move: undefined };

const anyMove: fc.Arbitrary<Move> = fc.record({
  // Two accounts are changed most of the time, so that the others get old.
  pair: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom([0, 1], [1, 0]) },
    { weight: 1, arbitrary: fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 2, maxLength: 2 }) },
  ),
  padding: fc.oneof({ weight: 2, arbitrary: fc.nat(40) }, { weight: 1, arbitrary: fc.nat(1_500) }),
});

const anyDeed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ by: fc.constant("victim" as const), move: anyMove }) },
  { weight: 1, arbitrary: fc.record({ by: fc.constant("victim" as const), move: fc.constant(undefined) }) },
  { weight: 3, arbitrary: fc.record({ by: fc.constant("steady" as const), move: anyMove }) },
);

const anyInterruption: fc.Arbitrary<Interruption> = fc.record({
  afterSteps: fc.oneof(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 400 })),
  isEnd: fc.boolean(),
  // Some go round the ring several times.
  others: fc.oneof(
    fc.constant([]),
    fc.array(anyMove, { maxLength: 5 }),
    fc.array(anyMove, { minLength: 40, maxLength: 120, size: "max" }),
  ),
  pausedMs: fc.nat(50_000),
});

/** Cells that nobody changes. The ring has to be gone round with them. */
const cold = Array.from({ length: 60 }, (_, index) => `cold:${index}`);
const coldValues = cold.map((key) => key.repeat(25));

class Ended extends Error {}

/** Threads over one memory, played one after the other. One of them is interrupted again and again. */
class World {
  readonly memory: Memory = openMemory(new SharedArrayBuffer(LEAST_BYTES));
  private nowUs = 1_000_000;
  private stepsLeft = Number.POSITIVE_INFINITY;
  private readonly steady = new SharedLog(new Ring(this.memory), () => this.nowUs);
  private victim = this.newVictim();

  constructor(private readonly interruptions: Interruption[]) {
    apply(this.steady, accounts, () => openAccounts());
    cold.forEach((key, at) => {
      apply(this.steady, [key], () => [{ index: 0, value: coldValues[at], ttlUs: 3_600_000_000_000 }]);
    });
  }

  /** A victim that is ended is followed by another one. */
  play({ by, move }: Deed): void {
    this.nowUs += 50;
    if (by === "steady") {
      this.move(this.steady, move);
      return;
    }
    this.stepsLeft = this.interruptions[0]?.afterSteps ?? Number.POSITIVE_INFINITY;
    try {
      if (move === undefined) this.checkSum();
      else this.move(this.victim, move);
    } catch (error) {
      if (!(error instanceof Ended)) throw error;
      this.victim = this.newVictim();
    }
    this.stepsLeft = Number.POSITIVE_INFINITY;
  }

  /** A thread that is new, one that was there all the time, and one that was interrupted. */
  logs(): SharedLog[] {
    const newcomer = new SharedLog(new Ring(this.memory), () => this.nowUs);
    return [newcomer, this.steady, this.victim];
  }

  private checkSum(): void {
    const sum = total(look(this.victim, accounts));
    if (sum !== 500) throw new Error(`A thread saw a sum of ${sum}.`);
  }

  private move(log: SharedLog, { pair, padding }: Move): void {
    apply(
      log,
      pair.map((index) => accounts[index]),
      (values) => moveOne(values, padding),
    );
  }

  private newVictim(): SharedLog {
    const ring = new SteppedRing(this.memory, () => {
      this.stepsLeft -= 1;
      if (this.stepsLeft === 0) this.interrupt();
    });
    return new SharedLog(ring, () => this.nowUs);
  }

  private interrupt(): void {
    const interruption = this.interruptions.shift();
    if (interruption === undefined) return;
    for (const move of interruption.others) {
      this.nowUs += 1;
      this.move(this.steady, move);
    }
    this.nowUs += interruption.pausedMs * 1_000;
    if (interruption.isEnd) throw new Ended();
    this.stepsLeft = this.interruptions[0]?.afterSteps ?? Number.POSITIVE_INFINITY;
  }
}

describe("a shared log", () => {
  it("keeps its sums and all else, and goes on, whenever a thread is ended or stands still in the middle of a change", () => {
    fc.assert(
      fc.property(
        fc.array(anyDeed, { minLength: 1, maxLength: 80, size: "max" }),
        fc.array(anyInterruption, { minLength: 1, maxLength: 12, size: "max" }),
        (deeds, interruptions) => {
          const world = new World([...interruptions]);
          for (const deed of deeds) world.play(deed);
          for (const log of world.logs()) {
            expect(total(look(log, accounts))).toBe(500);
            expect(look(log, cold)).toEqual(coldValues);
          }
        },
      ),
      seeded(300),
    );
  });

  it("carries out a change once, when others give up its record before it is published", () => {
    for (const moment of ["reserved", "begin", "fill", "filled", "publish"]) {
      const { other, log, interruption } = interruptedAt(moment, () => {
        expect(other.read(100)).toBe("pending");
        apply(other, accounts.slice(2, 4), (values) => moveOne(values, 3));
      });
      apply(log, accounts.slice(0, 2), (values) => moveOne(values, 3));
      expect(look(other, accounts).map(amountOf)).toEqual([99, 101, 99, 101, 100]);
      expect(interruption.count).toBe(1);
    }
  });

  it("shows nothing of values that were overwritten while they were read", () => {
    const { log: other, ring, memory } = freshLog(() => 1);
    let isReading = false;
    const disturbed = new SteppedRing(memory, (step) => {
      if (!isReading || step !== "text") return;
      isReading = false;
      goRound(other, ring);
    });
    const log = new SharedLog(disturbed, () => 1);
    expect(log.read(100)).toBe("level");
    isReading = true;
    expect(log.change(accounts, (values) => ({ writes: [], answer: values }))).toBe(undefined);
    expect(isReading).toBe(false);
    expect(total(look(log, accounts))).toBe(500);
  });

  it("counts a change that was published before its thread was ended", () => {
    const { other, log } = interruptedAt("published", () => {
      throw new Ended();
    });
    expect(() => apply(log, accounts.slice(0, 2), (values) => moveOne(values, 3))).toThrow(Ended);
    expect(look(other, accounts).map(amountOf)).toEqual([99, 101, 100, 100, 100]);
  });

  it("starts a change again when another one comes first while it passes the blocks of an ended thread", () => {
    const { other, log, memory, interruption } = interruptedAt("abandoned", () => {
      apply(other, accounts.slice(0, 2), (values) => moveOne(values, 3));
    });
    const ring = new Ring(memory);
    ring.reserve(ring.head(), 80);
    apply(other, accounts.slice(0, 2), (values) => moveOne(values, 3));
    let moved = 1;
    for (; interruption.count === 0 && moved < 1_000; moved++) {
      apply(log, accounts.slice(0, 2), (values) => moveOne(values, 200));
    }
    expect(interruption.count).toBe(1);
    expect(look(other, accounts).map(amountOf)).toEqual([100 - moved - 1, 100 + moved + 1, 100, 100, 100]);
  });

  it("passes the blocks of a thread that lets go of them in the same moment, and loses nothing", () => {
    const { log: other, memory } = freshLog(() => 1);
    const ring = new Ring(memory);
    const at = ring.head();
    ring.reserve(at, 80);
    apply(other, accounts.slice(0, 2), (values) => moveOne(values, 3));
    const steps: string[] = [];
    const passing = new SteppedRing(memory, (step) => {
      // Between the two reads of `abandon` and its write.
      if (step === "head" && steps.at(-1) === "abandon") ring.free(at, 80);
      steps.push(step);
    });
    const log = new SharedLog(passing, () => 1);
    let moved = 1;
    for (; !steps.includes("abandon") && moved < 1_000; moved++) {
      apply(log, accounts.slice(0, 2), (values) => moveOne(values, 200));
    }
    expect(look(other, accounts).map(amountOf)).toEqual([100 - moved, 100 + moved, 100, 100, 100]);
    expect(steps).toContain("abandon");
  });

  it("leaves the blocks of an ended thread alone for a minute, and uses them again then", () => {
    let nowUs = 1;
    const { log, ring } = freshLog(() => nowUs);
    const at = ring.head();
    ring.reserve(at, 90);

    goRound(log, ring);
    nowUs += 59_000_000;
    goRound(log, ring);
    expect(isUntouched(ring, at + 1)).toBe(true);
    nowUs += 2_000_000;
    goRound(log, ring);
    expect(isUntouched(ring, at + 1)).toBe(false);
    expect(total(look(log, accounts))).toBe(500);
  });

  it("uses the blocks of a thread again that only stood still, as soon as it has seen that it was given up", () => {
    const { log, other, memory } = interruptedAt("reserved", () => {
      apply(other, accounts.slice(2, 4), (values) => moveOne(values, 3));
    });
    const ring = new Ring(memory);
    const at = ring.head();
    apply(log, accounts.slice(0, 2), (values) => moveOne(values, 100));
    expect(isUntouched(ring, at + 1)).toBe(true);
    goRound(other, ring);
    expect(isUntouched(ring, at + 1)).toBe(false);
  });
});

/** A log over accounts that were opened, and the ring that it writes to. */
function freshLog(nowUs: () => number): { log: SharedLog; ring: Ring; memory: Memory } {
  const memory = openMemory(new SharedArrayBuffer(LEAST_BYTES));
  const ring = new Ring(memory);
  const log = new SharedLog(ring, nowUs);
  apply(log, accounts, () => openAccounts());
  return { log, ring, memory };
}

/** A log in which something happens once, at a step of the given name, and an undisturbed one over the same memory. */
function interruptedAt(
  moment: string,
  happens: () => void,
): { log: SharedLog; other: SharedLog; memory: Memory; interruption: { count: number } } {
  const interruption = { count: 0 };
  const { log: other, memory } = freshLog(() => 1);
  const ring = new SteppedRing(memory, (step) => {
    if (step !== moment || interruption.count > 0) return;
    interruption.count += 1;
    happens();
  });
  return { log: new SharedLog(ring, () => 1), other, memory, interruption };
}

/** Writes until every block that may be used has been used. */
function goRound(log: SharedLog, ring: Ring): void {
  const from = ring.head();
  while (ring.head() < from + 2 * ring.blockCount) {
    apply(log, accounts.slice(0, 2), (values) => moveOne(values, 100));
  }
}

function isUntouched(ring: Ring, block: number): boolean {
  return ring.uint32(block * 64) === 0;
}
