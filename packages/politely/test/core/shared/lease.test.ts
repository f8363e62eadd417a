import { describe, expect, it } from "vitest";
import { decideLease } from "../../../src/core/shared/lease.js";
import type { LeaseOperation, LeaseReply } from "../../../src/core/shared/operation.js";
import { StoreError } from "../../../src/errors.js";

const second = 1_000_000;
const hour = 3_600 * second;

/** A lease with its text, on a clock that the test moves. */
class LeasePlace {
  nowUs = 10 * hour;
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
    const { reply, text } = decideLease(this.text, operation, this.nowUs, "nightly");
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
