import { hostname } from "node:os";
import { describe, expect, it } from "vitest";
import { PolitelyError, StoreError } from "../../src/errors.js";
import { exclusive, LeaseLostError, type LeaseOptions } from "../../src/lease.js";
import { cellStore } from "../../src/stores/cellStore.js";
import { memoryCells, memoryStore } from "../../src/stores/memory.js";
import type { Store } from "../../src/stores/store.js";
import { VirtualClock } from "../../src/testing/index.js";
import { failure, many, rows, track } from "../verbs/support.js";
import { AT_ONCE, failing, leaseRig, linkTo } from "./lease/rig.js";

const year = 365 * 86_400_000;

describe("a lease", () => {
  it("goes to one of a hundred, and tells the others who has it and for how long", async () => {
    const { clock, ask } = leaseRig();
    const answers = await Promise.all(many(100, (index) => ask({ label: `run ${index}` })));
    expect(answers.filter(({ held }) => held)).toHaveLength(1);
    expect(answers[0].held).toBe(true);
    expect(answers.slice(1)).toEqual(many(99, () => ({ held: false, heldBy: "run 0", remainingMs: 30_000 })));
    await clock.advance(4_000);
    expect(await ask()).toEqual({ held: false, heldBy: "run 0", remainingMs: 26_000 });
  });

  it("is one for each name", async () => {
    const { clock, store } = leaseRig();
    const names = ["nightly", "Nightly", "nightly ", "夜間", "a:b", "'; drop table"];
    const answers = await Promise.all(names.map((name) => exclusive(store, name, { ttl: 1_000, clock })));
    expect(answers.map(({ held }) => held)).toEqual(names.map(() => true));
  });

  it("says by default which process of which host has it, and since when", async () => {
    const clock = new VirtualClock({ wallMs: Date.UTC(2026, 10, 16, 3, 30) });
    const { ask } = leaseRig(clock);
    await ask();
    const heldBy = `${hostname()}, process ${process.pid}, since 2026-11-16T03:30:00.000Z`;
    expect(await ask()).toMatchObject({ held: false, heldBy });
  });

  it("renews itself at each third of its life, and is held for as long as it is wanted", async () => {
    const { clock, link, take, ask } = leaseRig();
    const lease = await take();
    for (let hour = 0; hour < 3; hour += 1) {
      await clock.advance(3_600_000);
      expect(lease.signal.aborted).toBe(false);
      expect(await ask()).toMatchObject({ held: false });
    }
    expect(link.sent.filter((act) => act === "renew")).toHaveLength((3 * 3_600) / 10);
  });

  it("is free as soon as it is released, and leaves no timer behind", async () => {
    const { clock, take } = leaseRig();
    const first = await take();
    await clock.advance(11_000);
    await first.release();
    expect(clock.pendingTimers).toBe(0);
    const second = await take();
    expect(second.token).toBeGreaterThan(first.token);
    expect([first.signal.aborted, second.signal.aborted]).toEqual([false, false]);
    await clock.advance(120_000);
    expect(first.signal.aborted).toBe(false);
  });

  it("is given back once, however often and by whichever way it is released", async () => {
    const { link, take, ask } = leaseRig();
    const lease = await take();
    await Promise.all([lease.release(), lease.release(), lease[Symbol.asyncDispose]()]);
    await take({ label: "the next" });
    await lease.release();
    expect(link.sent.filter((act) => act === "release")).toHaveLength(1);
    expect(await ask()).toMatchObject({ held: false, heldBy: "the next" });
  });

  it("ends with its block under await using", async () => {
    const { take } = leaseRig();
    {
      await using lease = await take();
      expect(lease.held).toBe(true);
    }
    await take();
  });

  it("has a token larger than all before it, also when it was long forgotten or the wall clock was set back", async () => {
    const { clock, take } = leaseRig();
    const tokens: number[] = [];
    for (const passMs of [0, 40_000, 3_700_000, 7 * 86_400_000]) {
      await clock.advance(passMs);
      const lease = await take();
      tokens.push(lease.token);
      await lease.release();
      clock.shiftWall(-1_800_000);
    }
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(new Set(tokens).size).toBe(tokens.length);
  });

  it("has tokens by the store's date where the store has one, though the client's is years off", async () => {
    const clock = new VirtualClock();
    const atMs = Date.UTC(2026, 5, 1);
    const store: Store = { ...memoryStore(() => Math.floor((atMs + clock.now()) * 1_000)), timeline: "epoch" };
    const tokens: number[] = [];
    for (const offMs of [30 * year, -30 * year, 0]) {
      const off = new VirtualClock({ wallMs: atMs + offMs });
      const lease = await exclusive(store, "nightly", { ttl: "30s", clock: off });
      if (lease.held) tokens.push(lease.token);
      await clock.advance(86_400_000);
    }
    expect(tokens).toEqual([0, 1, 2].map((day) => (atMs + day * 86_400_000) * 1_000));
  });
});

describe("a lease that is lost", () => {
  it("aborts its signal before anybody else can get it, when the store cannot be reached until its life is over", async () => {
    const { clock, store, link, take, ask } = leaseRig();
    const lease = await take();
    await clock.advance(5_000);
    link.passage = failing;
    await clock.advance(24_969);
    expect(lease.signal.aborted).toBe(false);
    expect(await ask({}, store)).toMatchObject({ held: false, remainingMs: 31 });
    await clock.advance(1);
    expect(lease.signal.aborted).toBe(true);
    const reason = lease.signal.reason as LeaseLostError;
    expect(reason).toBeInstanceOf(LeaseLostError);
    expect(reason).toBeInstanceOf(PolitelyError);
    expect(reason).toMatchObject({
      code: "POLITELY_LEASE_LOST",
      name: "LeaseLostError",
      lease: "nightly",
      token: lease.token,
      loss: "expired",
    });
    expect(reason.cause).toBeInstanceOf(StoreError);
    expect(reason.message).toContain("the store failed within its ttl of 30000 ms");
    await clock.advance(30);
    expect(await ask({}, store)).toMatchObject({ held: true });
  });

  it("has tried to renew it many times, but no more than fifty", async () => {
    for (const random of [() => 0, () => 0.999]) {
      const { clock, link, take } = leaseRig();
      await take({ random });
      link.passage = failing;
      await clock.runToEnd();
      const tries = link.sent.length - 1;
      expect(tries).toBeGreaterThan(10);
      expect(tries).toBeLessThanOrEqual(50);
    }
  });

  it("is not lost when the store comes back in time", async () => {
    const { clock, link, take } = leaseRig();
    const lease = await take();
    link.passage = failing;
    await clock.advance(28_000);
    link.passage = () => AT_ONCE;
    await clock.advance(120_000);
    expect(lease.signal.aborted).toBe(false);
  });

  it("is not lost to one request that is never answered", async () => {
    const { clock, link, take } = leaseRig();
    const lease = await take();
    link.passage = () => ({ ...AT_ONCE, fate: "silent" });
    await clock.advance(12_000);
    link.passage = () => AT_ONCE;
    await clock.advance(120_000);
    expect(lease.signal.aborted).toBe(false);
  });

  it("counts from before the request was sent, so a slow store shortens the time that is relied on", async () => {
    const { clock, link, store, take, ask } = leaseRig();
    link.passage = () => ({ thereMs: 4_000, backMs: 5_000, fate: "fine" });
    const asking = take();
    await clock.advance(9_000);
    const lease = await asking;
    link.passage = failing;
    await clock.advance(20_970);
    expect(lease.signal.aborted).toBe(true);
    expect(await ask({}, store)).toMatchObject({ held: false, remainingMs: 4_030 });
  });

  it("is given up earlier by as much as the store's clients may disagree about the time", async () => {
    const { clock, link, take, ask } = leaseRig();
    const unsure = Object.assign(link, { clockErrorUs: 250_000 });
    const lease = await take({}, unsure);
    link.passage = failing;
    await clock.advance(29_719);
    expect(lease.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(lease.signal.aborted).toBe(true);
    expect(await failure(ask({ ttl: 999 }, unsure))).toBeInstanceOf(RangeError);
  });

  it("is seen at once by a process that stood still, before any of its timers is called", async () => {
    const looks: ((signal: AbortSignal) => unknown)[] = [
      (signal) => signal.aborted,
      (signal) => signal.reason instanceof LeaseLostError,
      (signal) => {
        try {
          signal.throwIfAborted();
          return false;
        } catch (error) {
          return error instanceof LeaseLostError;
        }
      },
    ];
    for (const look of looks) {
      const { clock, link, take } = leaseRig();
      const { signal } = await take();
      let events = 0;
      signal.addEventListener("abort", () => {
        events += 1;
      });
      clock.stall(29_969);
      expect(look(signal)).toBe(false);
      clock.stall(1);
      expect(look(signal)).toBe(true);
      await clock.runToEnd();
      expect([events, link.sent.join()]).toEqual([1, "take"]);
    }
  });

  it("cannot be released, nor kept from the next holder, by a process that stood still", async () => {
    const { clock, store, link, take, ask } = leaseRig();
    const first = await take();
    clock.stall(30_000);
    const second = await take({ label: "the next" }, linkTo(store, clock));
    await first.release();
    expect(link.sent).toEqual(["take"]);
    await clock.advance(60_000);
    expect([first.signal.aborted, second.signal.aborted]).toEqual([true, false]);
    expect(await ask({}, store)).toMatchObject({ held: false, heldBy: "the next" });
  });

  it("says who has it, when the store forgot it and gave it to somebody else", async () => {
    const { clock, take } = leaseRig();
    const restarted = leaseRig(clock);
    let behind: Store = restarted.store;
    const lease = await take({}, { ...behind, transact: (keys, operation) => behind.transact(keys, operation) });
    behind = leaseRig(clock).store;
    await take({ label: "the next" }, behind);
    await clock.advance(10_000);
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toMatchObject({ loss: "taken" });
    expect(String(lease.signal.reason)).toContain("the next has it, for 20000 ms at least");
    expect(String(lease.signal.reason)).not.toContain("ttl");
  });

  it("is lost when the store forgot it, though nobody else has it: somebody may have had it in between", async () => {
    const { clock, take } = leaseRig();
    let behind = leaseRig(clock).store;
    const lease = await take({}, { ...behind, transact: (keys, operation) => behind.transact(keys, operation) });
    behind = leaseRig(clock).store;
    await clock.advance(10_000);
    expect(lease.signal.reason).toMatchObject({ loss: "expired" });
    expect(clock.pendingTimers).toBe(0);
  });
});

describe("a release", () => {
  it("is sent again when it fails once", async () => {
    const { store, link, take, ask } = leaseRig();
    const lease = await take();
    let failures = 1;
    link.passage = () => (failures-- > 0 ? failing() : AT_ONCE);
    await lease.release();
    expect(await ask({}, store)).toMatchObject({ held: true });
  });

  it("that fails twice rejects, saying when the lease ends by itself", async () => {
    const { clock, link, take } = leaseRig();
    const lease = await take();
    link.passage = failing;
    const error = await failure(lease.release());
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ cause: { message: "The request was lost on its way." } });
    expect(String(error)).toContain("It ends by itself in about 29970 ms");
    expect([clock.pendingTimers, lease.signal.aborted]).toEqual([0, false]);
  });

  it("does not wait for a silent store beyond the life of the lease, and not beyond 30 s", async () => {
    for (const [ttl, waitMs, state] of [
      ["10s", 10_000, "done"],
      ["10min", 30_000, "failed"],
    ] as const) {
      const { clock, link, take } = leaseRig();
      const lease = await take({ ttl });
      link.passage = () => ({ ...AT_ONCE, fate: "silent" });
      const release = track(lease.release());
      await clock.advance(waitMs - 1);
      expect(release.state).toBe("pending");
      await clock.advance(1);
      expect(release.state).toBe(state);
    }
  });
});

describe("bad input to a lease", () => {
  const refused = (options: unknown, name: unknown = "nightly", store: unknown = leaseRig().store): Promise<unknown> =>
    failure(exclusive(store as Store, name as string, options as LeaseOptions));

  it.each(rows([undefined, null, 7, "x", {}, { transact: 1 }]))("refuses the store %s", async (_, store) => {
    // undefined would mean the default of this helper.
    expect(await refused({ ttl: 1_000 }, "nightly", store ?? null)).toBeInstanceOf(TypeError);
  });

  it.each(rows([null, 7, {}, "", "a\nb", "x".repeat(201)]))("refuses the name %s", async (_, name) => {
    const error = await refused({ ttl: 1_000 }, name);
    expect(error).toBeInstanceOf(typeof name === "string" ? RangeError : TypeError);
    expect(String(error)).toMatch(/name must be .*; got /);
  });

  it.each(rows([undefined, null, 0, -1, 9, Number.NaN, Number.POSITIVE_INFINITY, "soon", "200y", {}]))(
    "refuses the ttl %s",
    async (_, ttl) => {
      const error = await refused({ ttl });
      expect(error).toBeInstanceOf(typeof ttl === "number" || typeof ttl === "string" ? RangeError : TypeError);
      expect(String(error)).toMatch(/ttl must .*; got /);
    },
  );

  it.each([
    [undefined, "options must be an object; got undefined"],
    [{ ttl: 1_000, tll: 1 }, 'options has no field "tll"'],
    [{ ttl: 1_000, wait: -1 }, "wait must not be negative; got -1"],
    [{ ttl: 1_000, wait: Number.POSITIVE_INFINITY }, "wait must be finite; got Infinity"],
    [
      { ttl: 1_000, label: "" },
      'label must be a text of 1 to 200 characters, none of them a control character; got ""',
    ],
    [{ ttl: 1_000, label: 5 }, "label must be a text"],
    [{ ttl: 1_000, signal: {} }, "signal must be an AbortSignal; got an object"],
    [{ ttl: 1_000, random: 4 }, "random must be a function; got 4"],
    [{ ttl: 1_000, clock: {} }, "clock must be an object with now, wall, setTimer and clearTimer; now is missing"],
  ])("refuses the options %j", async (options, message) => {
    expect(String(await refused(options))).toContain(message);
  });

  it("refuses to take what is not a lease under its key, and leaves it as it is", async () => {
    const clock = new VirtualClock();
    const cells = memoryCells(() => Math.floor(clock.now() * 1_000));
    const writes = [{ index: 0, value: "foreign", ttlUs: 1_000_000_000 }];
    await cells.change(["lease:nightly"], () => ({ writes, answer: undefined }));
    const error = await failure(exclusive(cellStore(cells), "nightly", { ttl: 1_000, clock }));
    expect(error).toBeInstanceOf(StoreError);
    expect(String(error)).toContain("nightly");
    const values = await cells.change(["lease:nightly"], (seen) => ({ writes: [], answer: seen }));
    expect(values).toEqual(["foreign"]);
  });
});
