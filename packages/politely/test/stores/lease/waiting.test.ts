import { describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.js";
import type { Store } from "../../../src/stores/store.js";
import { failure, track } from "../../verbs/support.js";
import { AT_ONCE, failing, held, leaseRig, linkTo } from "./rig.js";

describe("waiting for a lease", () => {
  it("gets it soon after it is released: after about a tenth of the ttl, and 5 s or so at most", async () => {
    for (const [ttl, withinMs] of [
      ["1s", 125],
      ["20s", 2_500],
      ["10min", 6_250],
    ] as const) {
      const { clock, store, take, ask } = leaseRig();
      const first = await take({ ttl });
      const waiting = track(ask({ ttl, wait: "1h" }, linkTo(store, clock)));
      await clock.advance(60_000);
      expect(waiting.state).toBe("pending");
      await first.release();
      await clock.advance(withinMs);
      expect(waiting.value).toMatchObject({ held: true });
    }
  });

  it("gets it within 10 ms of its end when the holder died", async () => {
    const { clock, store, link, take, ask } = leaseRig();
    await take();
    await clock.advance(15_000);
    link.passage = failing;
    const waiting = track(ask({ wait: "1h" }, linkTo(store, clock)));
    await clock.advance(24_999);
    expect(waiting.state).toBe("pending");
    await clock.advance(11);
    expect(waiting.value).toMatchObject({ held: true });
  });

  it("asks eight to fifteen times in the life of a dead holder's lease", async () => {
    const { clock, store, link, take, ask } = leaseRig();
    await take();
    link.passage = failing;
    const other = linkTo(store, clock);
    const waiting = ask({ wait: "1h" }, other);
    await clock.advance(30_010);
    held(await waiting);
    const asked = other.sent.filter((act) => act === "take").length;
    expect(asked).toBeGreaterThanOrEqual(8);
    expect(asked).toBeLessThanOrEqual(15);
  });

  it("ends with who has it when the time is up, having asked at the very end", async () => {
    const { clock, store, take, ask } = leaseRig();
    await take({ label: "the first" });
    const other = linkTo(store, clock);
    const waiting = track(ask({ wait: 12_345 }, other));
    await clock.advance(12_344);
    expect(waiting.state).toBe("pending");
    const before = other.sent.length;
    await clock.advance(1);
    expect(waiting.value).toMatchObject({ held: false, heldBy: "the first", remainingMs: 27_655 });
    expect(other.sent.length).toBe(before + 1);
    expect(clock.pendingTimers).toBe(2); // those of the first holder
  });

  it("serves everybody in the end, one after the other", async () => {
    const { clock, store, ask } = leaseRig();
    let holders = 0;
    let most = 0;
    const runs = Array.from({ length: 20 }, async () => {
      const lease = held(await ask({ wait: "1h", ttl: "5s" }, linkTo(store, clock)));
      holders += 1;
      most = Math.max(most, holders);
      await new Promise<void>((resolve) => void clock.setTimer(clock.now() + 1_000, resolve));
      holders -= 1;
      await lease.release();
      return lease.token;
    });
    await clock.advance(60_000);
    expect(new Set(await Promise.all(runs)).size).toBe(20);
    expect(most).toBe(1);
  });

  it("says since when it is held by the time it was got, not by the time the wait began", async () => {
    const { clock, store, take, ask } = leaseRig();
    const first = await take();
    const waiting = ask({ wait: "1h" }, linkTo(store, clock));
    await clock.advance(600_000);
    await first.release();
    await clock.advance(5_000);
    held(await waiting);
    const { heldBy } = (await ask()) as { heldBy: string };
    expect(heldBy).toMatch(/since 2026-01-01T00:10:0/);
  });
});

describe("aborting", () => {
  it("before it is asked for asks nothing", async () => {
    const { link, ask } = leaseRig();
    const reason = new Error("no longer wanted");
    expect(await failure(ask({ signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(link.sent).toEqual([]);
  });

  it("ends a wait at once, with the reason, and leaves no timer behind", async () => {
    const { clock, store, take, ask } = leaseRig();
    const first = await take();
    const controller = new AbortController();
    const waiting = track(ask({ wait: "1h", signal: controller.signal }, linkTo(store, clock)));
    await clock.advance(7_000);
    const reason = new Error("no longer wanted");
    controller.abort(reason);
    await clock.settle();
    expect(waiting.error).toBe(reason);
    await first.release();
    expect(clock.pendingTimers).toBe(0);
  });

  it("while the store is being asked gives back what comes of it", async () => {
    const { clock, store, link, ask } = leaseRig();
    link.passage = () => ({ thereMs: 100, backMs: 100, fate: "fine" });
    const controller = new AbortController();
    const asking = track(ask({ signal: controller.signal }));
    await clock.advance(150);
    controller.abort(new Error("no longer wanted"));
    await clock.settle();
    expect(asking.state).toBe("failed");
    expect(await ask({}, store)).toMatchObject({ held: false });
    await clock.advance(250);
    expect(link.sent).toEqual(["take", "release"]);
    expect(await ask({}, store)).toMatchObject({ held: true });
  });

  it("after it was got changes nothing", async () => {
    const { clock, take } = leaseRig();
    const controller = new AbortController();
    const lease = await take({ signal: controller.signal });
    controller.abort();
    await clock.advance(100_000);
    expect(lease.signal.aborted).toBe(false);
  });
});

describe("a store that fails while it is asked for a lease", () => {
  it("once is asked again, and a reply that got lost is given again", async () => {
    for (const fate of ["lost", "unheard"] as const) {
      const { store, link, take, ask } = leaseRig();
      let failures = 1;
      link.passage = () => (failures-- > 0 ? { ...AT_ONCE, fate } : AT_ONCE);
      const lease = await take();
      expect(link.sent).toEqual(["take", "take"]);
      await lease.release();
      expect(await ask({}, store)).toMatchObject({ held: true });
    }
  });

  it("twice makes it reject, and what may have been taken is given back", async () => {
    const { clock, store, link, ask } = leaseRig();
    link.passage = (act) => ({ ...AT_ONCE, fate: act === "take" ? "unheard" : "fine" });
    const error = await failure(ask({ wait: "1h" }));
    expect(error).toBeInstanceOf(StoreError);
    expect(String(error)).toContain("The reply was lost on its way.");
    await clock.settle();
    expect(await ask({}, store)).toMatchObject({ held: true });
  });

  it("with an error of its own makes it reject with a StoreError that has it as its cause", async () => {
    const { ask } = leaseRig();
    const cause = new Error("socket closed");
    const broken: Store = { name: "Broken", timeline: "machine", transact: () => Promise.reject(cause) };
    const error = await failure(ask({}, broken));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ cause, code: "POLITELY_STORE" });
    expect(String(error)).toContain("Broken");
  });

  it("by saying nothing makes it reject within the ttl, and within 30 s", async () => {
    for (const [ttl, withinMs] of [
      ["2s", 2_000],
      ["10min", 30_000],
    ] as const) {
      const { clock, link, ask } = leaseRig();
      link.passage = () => ({ ...AT_ONCE, fate: "silent" });
      const asking = track(ask({ ttl }));
      await clock.advance(withinMs - 1);
      expect(asking.state).toBe("pending");
      await clock.advance(1);
      expect(asking.error).toBeInstanceOf(StoreError);
      expect(String(asking.error)).toContain(`did not answer within ${withinMs} ms`);
    }
  });

  it("by answering when the lease has run out makes it reject, since it could not be relied on", async () => {
    const { clock, link, ask } = leaseRig();
    link.passage = () => ({ thereMs: 0, backMs: 999.5, fate: "fine" });
    const asking = track(ask({ ttl: "1s" }));
    await clock.advance(999.5);
    expect(asking.error).toBeInstanceOf(StoreError);
  });
});
