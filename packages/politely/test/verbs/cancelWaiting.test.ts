import { describe, expect, it } from "vitest";
import { expectBooks, failure, keyRig, many, only, rig, startsOf, track } from "./support.js";

describe("cancelWaiting", () => {
  it("rejects everybody waiting for one host with the reason, and tells how many", async () => {
    const { clock, limiter, events } = rig({ default: { minDelay: "1s" } });
    await Promise.all([limiter.acquire("a.org"), limiter.acquire("b.org")]);
    const gone = many(3, () => failure(limiter.acquire("a.org")));
    const stays = limiter.acquire("b.org");
    const reason = new Error("changed my mind");
    expect(limiter.cancelWaiting("https://A.org/", reason)).toBe(3);
    expect(await Promise.all(gone)).toEqual([reason, reason, reason]);
    expect(only(events, "cancel").map((event) => event.key)).toEqual(["a.org", "a.org", "a.org"]);
    expect(limiter.stats("a.org")).toMatchObject({ waiting: 0, cancelled: 3, cancelledRequests: 3 });
    expectBooks(limiter.stats("a.org"));
    await clock.advance(1_000);
    expect((await stays).startedAtMs).toBe(1_000);
  });

  it("without a target rejects everybody", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    const all = many(5, (index) => many(3, () => track(limiter.acquire(`h${index}.org`)))).flat();
    expect(limiter.cancelWaiting(undefined, "stop")).toBe(10);
    await clock.settle();
    expect(all.filter((waiter) => waiter.state === "failed" && waiter.error === "stop")).toHaveLength(10);
    expect(clock.pendingTimers).toBe(0);
  });

  it("without a reason rejects with an error that explains itself", async () => {
    const { limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const gone = failure(limiter.acquire());
    expect(limiter.cancelWaiting()).toBe(1);
    expect(await gone).toBeInstanceOf(Error);
  });

  it("tells 0 where nobody waits, and leaves what is in flight alone", async () => {
    const { limiter } = rig({ default: { concurrency: 1 } });
    await limiter.acquire("a.org");
    expect(limiter.cancelWaiting("a.org")).toBe(0);
    expect(limiter.cancelWaiting("never-seen.org")).toBe(0);
    expect(limiter.cancelWaiting()).toBe(0);
    expect(limiter.stats("a.org")?.inFlight).toBe(1);
  });

  it("reaches those of every intent of the host", async () => {
    const { limiter } = rig({ hosts: { "a.org": { minDelay: "1s", intents: { search: { minDelay: "5s" } } } } });
    await limiter.acquire({ host: "a.org", intent: "search" });
    const gone = [failure(limiter.acquire("a.org")), failure(limiter.acquire({ host: "a.org", intent: "search" }))];
    expect(limiter.cancelWaiting("a.org", "stop")).toBe(2);
    expect(await Promise.all(gone)).toEqual(["stop", "stop"]);
  });

  it("leaves the pace as it was: the next one starts when it may", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    void many(10, () => track(limiter.acquire()));
    limiter.cancelWaiting("stop");
    const next = [limiter.acquire(), limiter.acquire()];
    await clock.advance(2_000);
    expect(await startsOf(next)).toEqual([1_000, 2_000]);
  });
});

describe("idle", () => {
  it("resolves at once where nothing happens", async () => {
    const { limiter } = rig();
    expect(await Promise.all([limiter.idle(), limiter.idle("never-seen.org")])).toEqual([undefined, undefined]);
  });

  it("resolves when nobody waits and nothing is in flight any more", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    const first = await limiter.acquire("a.org");
    const second = limiter.acquire("a.org");
    const idle = track(limiter.idle("a.org"));
    first.release();
    await clock.advance(1_000);
    expect(idle.state).toBe("pending");
    (await second).release();
    await clock.settle();
    expect(idle.state).toBe("done");
  });

  it("of one host does not wait for another, of all waits for every one", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    const [a, b] = await Promise.all([limiter.acquire("a.org"), limiter.acquire("b.org")]);
    const ofA = track(limiter.idle("a.org"));
    const ofAll = track(limiter.idle());
    a.release();
    await clock.settle();
    expect([ofA.state, ofAll.state]).toEqual(["done", "pending"]);
    b.release();
    await clock.settle();
    expect(ofAll.state).toBe("done");
  });

  it("resolves when the last waiter is cancelled", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    (await limiter.acquire()).release();
    const waiting = failure(limiter.acquire());
    const idle = track(limiter.idle());
    await clock.settle();
    expect(idle.state).toBe("pending");
    limiter.cancelWaiting("stop");
    await waiting;
    await clock.settle();
    expect(idle.state).toBe("done");
  });

  it("resolves when the last permit lapses", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1, maxHold: "5s" });
    await limiter.acquire();
    const idle = track(limiter.idle());
    await clock.advance(4_999);
    expect(idle.state).toBe("pending");
    await clock.advance(1);
    expect(idle.state).toBe("done");
  });
});
