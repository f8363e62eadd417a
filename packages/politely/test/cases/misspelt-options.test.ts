import { describe, expect, it } from "vitest";
import type { AcquireOptions, Limiter, PolicyInput, Target } from "../../src/index.js";
import { failure, rig } from "../verbs/support.js";

type RecordOptions = Parameters<Limiter["record"]>[2];
type CloseOptions = Parameters<Limiter["close"]>[0];

/** What a caller without types may pass. */
function untyped<T>(value: unknown): T {
  return value as T;
}

describe("an option that is misspelt or of the wrong kind", () => {
  const policy = { default: {}, scopes: { "k:*": { minDelay: "10s" } } } as const;

  it("rejects acquire", async () => {
    const { limiter } = rig(policy);
    const error = await failure(limiter.acquire("a.example", untyped<AcquireOptions>({ maxwait: 5 })));
    expect(error).toBeInstanceOf(TypeError);
  });

  it.each<{ title: string; call: (limiter: Limiter) => unknown }>([
    {
      title: "a field of a target",
      call: (limiter) => limiter.tryAcquire(untyped<Target>({ host: "a.example", scope: ["k:1"] })),
    },
    { title: "options that are a number", call: (limiter) => limiter.tryAcquire("a.example", untyped(5)) },
    { title: "a field of tryAcquire", call: (limiter) => limiter.tryAcquire("a.example", untyped({ costs: 5 })) },
    {
      title: "a field of record",
      call: (limiter) => limiter.record("a.example", "success", untyped<RecordOptions>({ startedAt: 5 })),
    },
    { title: "no policy at all", call: (limiter) => limiter.configure(untyped<PolicyInput>(undefined)) },
    { title: "a field of close", call: (limiter) => limiter.close(untyped<CloseOptions>({ dr4in: 1 })) },
  ])("throws and starts nothing: $title", ({ call }) => {
    const { limiter, events } = rig(policy);
    expect(() => call(limiter)).toThrow();
    expect(events).toEqual([]);
    expect(limiter.tryAcquire("a.example")).toBeDefined();
  });
});
