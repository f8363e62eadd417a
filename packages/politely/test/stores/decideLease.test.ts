import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/errors.js";
import { decideLease } from "../../src/stores/decideLease.js";
import type { LeaseOperation, LeaseReply } from "../../src/stores/operations.js";
import { seeded } from "../laws/seeded.js";

const second = 1_000_000;
const hour = 3_600 * second;

/** A lease with its text, on a clock that the test moves. */
class LeasePlace {
  nowUs = 10 * hour;
  errorUs = 0;
  statedUs = 0;
  text: string | undefined;

  send(holder: string, act: LeaseOperation["act"], terms: Partial<LeaseOperation> = {}): LeaseReply {
    const operation: LeaseOperation = {
      kind: "lease",
      act,
      holder,
      label: `${holder}!`,
      ttlUs: second,
      epochUs: 5,
      ...terms,
    };
    const { errorUs, statedUs } = this;
    const { reply, text } = decideLease(this.text, operation, this.nowUs, "nightly", {
      isDate: false,
      errorUs,
      statedUs,
    });
    this.text = text ?? this.text;
    return reply;
  }
}

describe("a lease", () => {
  it("is held until its last microsecond, and free at the next", () => {
    const lease = new LeasePlace();
    expect(lease.send("a", "take")).toMatchObject({ isHeld: true, label: "a!", remainingUs: second });
    lease.nowUs += second - 1;
    expect(lease.send("b", "take")).toMatchObject({ isHeld: false, label: "a!", remainingUs: 1 });
    lease.nowUs += 1;
    expect(lease.send("b", "look")).toMatchObject({ isHeld: false, label: "", token: 0, remainingUs: 0 });
    expect(lease.send("b", "take")).toMatchObject({ isHeld: true, label: "b!" });
    expect(lease.send("a", "renew")).toMatchObject({ isHeld: false, label: "b!" });
  });

  it("has a larger token for each holder, and never one below the time", () => {
    const lease = new LeasePlace();
    const tokens = [7, 7, 3, 900].map((epochUs, index) => {
      const { token } = lease.send(`holder ${index}`, "take", { epochUs });
      lease.nowUs += second;
      return token;
    });
    expect(tokens).toEqual([7, 8, 9, 900]);
    expect(lease.send("again", "take").token).toBe(901);
    expect(lease.send("again", "renew").token).toBe(901);
    expect(lease.send("again", "take").token).toBe(901);
  });

  it("changes nothing for one who does not hold it", () => {
    const lease = new LeasePlace();
    lease.send("a", "take");
    const { text } = lease;
    for (const act of ["take", "renew", "release", "look"] as const) lease.send("b", act, { ttlUs: hour });
    expect(lease.text).toBe(text);
  });

  it("is over when its holder says so, and remembers the token", () => {
    const lease = new LeasePlace();
    const { token } = lease.send("a", "take");
    expect(lease.send("a", "release").isHeld).toBe(false);
    expect(lease.send("a", "renew").isHeld).toBe(false);
    expect(lease.send("b", "take")).toMatchObject({ isHeld: true, token: token + 1 });
  });

  it("is over at once also for those whose time is behind that of the holder who gave it back", () => {
    const lease = new LeasePlace();
    const { token } = lease.send("a", "take");
    lease.send("a", "release");
    lease.nowUs -= second / 10;
    expect(lease.send("b", "look")).toMatchObject({ isHeld: false, label: "", remainingUs: 0 });
    expect(lease.send("b", "take")).toMatchObject({ isHeld: true, token: token + 1 });
  });

  it("does not outlast its lifetime when the clock is set back", () => {
    const lease = new LeasePlace();
    lease.send("a", "take");
    lease.nowUs -= 5 * hour;
    expect(lease.send("b", "take")).toMatchObject({ isHeld: false, remainingUs: second });
    lease.nowUs += second;
    expect(lease.send("b", "take").isHeld).toBe(true);
  });

  it.each(["", "x", "[]", "{}", '["lease",2,"a","b",1,2,3]', '["lease",1,"a","b",1,2]', "[1,[1],2]"])(
    "is told from %j, by name",
    (text) => {
      const lease = new LeasePlace();
      lease.text = text;
      expect(() => lease.send("a", "take")).toThrow(StoreError);
      expect(() => lease.send("a", "look")).toThrow(/"nightly"/);
    },
  );
});

/** One who asks: after how long, what, and how well it knows the time then. */
interface Ask {
  readonly afterUs: number;
  readonly holder: string;
  readonly act: "take" | "renew" | "release";
  /** How far its time may be behind, and the part of that by which it is. */
  readonly errorUs: number;
  readonly behind: number;
}

const anyAsk: fc.Arbitrary<Ask> = fc.record({
  afterUs: fc.oneof(fc.nat(second / 10), fc.nat(3 * second)),
  holder: fc.constantFrom("a", "b", "c"),
  act: fc.constantFrom("take" as const, "take" as const, "renew" as const, "release" as const),
  errorUs: fc.oneof(fc.nat(second / 10), fc.nat(3 * second)),
  behind: fc.double({ min: 0, max: 1, noNaN: true }),
});

describe("a lease among clients that do not know the time well", () => {
  const ttlUs = 2 * second;
  /** What the store of each says that clients differ by. Whoever holds the lease gives up that much before the end. */
  const stated: Readonly<Record<string, number>> = { a: 0, b: second / 10, c: 1.1 * second };

  it("never has two who believe in it, however far behind each of them is", () => {
    let [handedOn, games] = [0, 0];
    const play = (asks: readonly Ask[]): void => {
      games += 1;
      const lease = new LeasePlace();
      let trueUs = lease.nowUs;
      let believer = { holder: "", untilUs: 0 };
      for (const { afterUs, holder, act, errorUs, behind } of asks) {
        trueUs += afterUs;
        lease.nowUs = trueUs - Math.floor(behind * errorUs);
        lease.errorUs = errorUs;
        lease.statedUs = stated[holder];
        const { isHeld } = lease.send(holder, act, { ttlUs });
        if (act === "release" && believer.holder === holder) believer = { holder: "", untilUs: 0 };
        if (!isHeld) continue;
        if (believer.holder !== holder) {
          expect(believer.untilUs).toBeLessThanOrEqual(trueUs);
          handedOn += 1;
        }
        believer = { holder, untilUs: trueUs + ttlUs - stated[holder] };
      }
    };
    fc.assert(fc.property(fc.array(anyAsk, { minLength: 2, maxLength: 60 }), play), seeded(500));
    // A game in which nobody follows anybody shows nothing.
    expect(handedOn).toBeGreaterThan(games / 2);
  });

  it("is free once its life and what both did not know have passed, however often somebody asks before", () => {
    const anyBehind = fc.nat(3 * second);
    fc.assert(
      fc.property(anyBehind, anyBehind, fc.array(fc.nat(second), { maxLength: 40 }), (ofHolder, ofNext, pauses) => {
        const lease = new LeasePlace();
        const trueUs = lease.nowUs;
        lease.errorUs = ofHolder;
        lease.send("dead", "take", { ttlUs });
        lease.errorUs = ofNext;
        lease.nowUs -= ofNext;
        for (const us of pauses) {
          lease.nowUs += us;
          lease.send("next", "take", { ttlUs });
        }
        lease.nowUs = Math.max(lease.nowUs, trueUs + ttlUs + ofHolder);
        expect(lease.send("next", "take", { ttlUs }).isHeld).toBe(true);
      }),
      seeded(200),
    );
  });

  it("is not made shorter by one who is behind, and is when the clock was set back", () => {
    const lease = new LeasePlace();
    lease.send("a", "take", { ttlUs });
    const { text } = lease;
    lease.errorUs = second;
    lease.statedUs = 2 * second;
    lease.nowUs -= second;
    expect(lease.send("b", "take")).toMatchObject({ isHeld: false, remainingUs: ttlUs + second });
    expect(lease.text).toBe(text);
    lease.nowUs -= hour;
    expect(lease.send("b", "take")).toMatchObject({ isHeld: false, remainingUs: ttlUs + second });
    expect(lease.text).not.toBe(text);
  });
});
