import { describe, expect, it } from "vitest";
import { decideLease } from "../../../src/core/shared/lease.js";
import type { LeaseOperation } from "../../../src/core/shared/operation.js";

const ask = (act: LeaseOperation["act"], holder: string): LeaseOperation => ({
  kind: "lease",
  act,
  holder,
  label: holder,
  ttlUs: 5_000_000,
  epochUs: 0,
});

describe("a lease", () => {
  it("is never longer than it was taken for, though the store's clock is set back by an hour", () => {
    const hourUs = 3_600_000_000;
    const taken = decideLease(undefined, ask("take", "one"), hourUs, "run");
    const refused = decideLease(taken.text, ask("take", "other"), 0, "run");
    expect(refused.reply).toMatchObject({ isHeld: false, label: "one", remainingUs: 5_000_000 });
    const late = decideLease(refused.text ?? taken.text, ask("take", "other"), 5_000_000, "run");
    expect(late.reply.isHeld).toBe(true);
    expect(late.reply.token).toBeGreaterThan(taken.reply.token);
  });
});
