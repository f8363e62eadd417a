import { afterEach, describe, expect, it } from "vitest";
import { politely } from "../../../src/politely.js";
import type { SharedLimiter } from "../../../src/sharedTypes.js";
import { threadMemory, threadStore } from "../../../src/stores/threads.js";

const policy = { default: { window: "3/h" }, hosts: { "x.org": { rate: "1000/s", burst: 1000 } } } as const;
const opened: SharedLimiter[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((limiter) => limiter.close()));
});

/** Two threads, as far as the memory is concerned, and what they warn of. */
function threads(): { readonly one: SharedLimiter; readonly other: SharedLimiter; readonly events: string[] } {
  const memory = threadMemory(65_536);
  const events: string[] = [];
  const [one, other] = [1, 2].map(() => politely(policy, { store: threadStore(memory) }));
  for (const limiter of [one, other]) {
    opened.push(limiter);
    limiter.subscribe(({ type }) => (type === "outage" || type === "warn" ? events.push(type) : 0));
  }
  return { one, other, events };
}

/** Meets new hosts until there is no room for another. */
async function fill(limiter: SharedLimiter): Promise<unknown> {
  for (let number = 0; number < 1_000; number++) {
    const started: unknown = await limiter.acquire(`h${number}.org`).then(
      (permit) => permit.release(),
      (error: unknown) => error,
    );
    if (started !== undefined) return started;
  }
  return undefined;
}

describe("a memory of threads that is full", () => {
  it("refuses new hosts with an error that lasts, and is no outage: no thread goes on by a part of its own", async () => {
    const { one, other, events } = threads();
    await (await one.acquire("x.org")).release();
    expect(await fill(one)).toMatchObject({ code: "POLITELY_STORE", isLasting: true });
    for (const limiter of [one, other]) {
      await expect(limiter.acquire("new.org")).rejects.toThrow("The shared memory is full");
      await (await limiter.acquire("x.org")).release();
    }
    expect(events).toEqual([]);
  });

  it("keeps room for what is in it: a 429 of a known host is heard by the other threads", async () => {
    const { one, other, events } = threads();
    const permit = await one.acquire("x.org");
    await fill(one);
    await permit.release({ kind: "rate_limited", retryAfterMs: 60_000 });
    const decision = await other.check("x.org");
    expect(decision.proceed).toBe(false);
    expect(decision.waitMs).toBeGreaterThan(50_000);
    expect(events).toEqual([]);
  });
});
