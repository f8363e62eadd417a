import { describe, expect, it, vi } from "vitest";
import { Signals, type Watched } from "../../src/scheduler/signals.js";

/** Signals that note who was told what, and an abort controller whose listeners are counted. */
function watched() {
  const told: { waiting: Watched; reason: unknown }[] = [];
  const onDone = vi.fn<() => void>();
  const signals: Signals<Watched> = new Signals<Watched>((waiting, reason) => {
    told.push({ waiting, reason });
    signals.unwatch(waiting);
  }, onDone);
  return { signals, told, onDone };
}

function counted() {
  const controller = new AbortController();
  const { signal } = controller;
  return {
    controller,
    signal,
    added: vi.spyOn(signal, "addEventListener"),
    removed: vi.spyOn(signal, "removeEventListener"),
  };
}

function someWaiting(count: number): Watched[] {
  return Array.from({ length: count }, () => ({ watch: undefined, watchPlace: -1 }));
}

describe("signals", () => {
  it("have one listener each, however many wait", () => {
    const { signals } = watched();
    const [one, other] = [counted(), counted()];
    for (const waiting of someWaiting(100)) signals.watch(one.signal, waiting);
    for (const waiting of someWaiting(3)) signals.watch(other.signal, waiting);
    expect([one.added.mock.calls.length, other.added.mock.calls.length]).toEqual([1, 1]);
  });

  it("lose it with the last who waits, in whatever order they leave, and get a new one after that", () => {
    const { signals } = watched();
    const { signal, added, removed } = counted();
    const [a, b, c, d] = someWaiting(4);
    for (const waiting of [a, b, c, d]) signals.watch(signal, waiting);
    for (const waiting of [b, a, d]) signals.unwatch(waiting);
    expect(removed).not.toHaveBeenCalled();
    signals.unwatch(c);
    expect(removed.mock.calls).toEqual([["abort", added.mock.calls[0][1]]]);
    expect([a, b, c, d].every(({ watch }) => watch === undefined)).toBe(true);
    signals.watch(signal, a);
    expect(added).toHaveBeenCalledTimes(2);
  });

  it("tell everybody who waits, in order of arrival and with the reason, then that this was all", () => {
    const { signals, told, onDone } = watched();
    const { controller, signal, removed } = counted();
    const [a, b, c, gone] = someWaiting(4);
    for (const waiting of [a, gone, b, c]) signals.watch(signal, waiting);
    signals.unwatch(gone);
    const reason = new Error("enough");
    controller.abort(reason);
    expect(told).toEqual([a, b, c].map((waiting) => ({ waiting, reason })));
    expect(told.every((each) => each.reason === reason)).toBe(true);
    expect([onDone.mock.calls.length, removed.mock.calls.length]).toEqual([1, 1]);
  });

  it("tell everybody who still waits, also when telling one takes others off", () => {
    const told: Watched[] = [];
    const { controller, signal } = counted();
    const [a, next, b, last] = someWaiting(4);
    const signals: Signals<Watched> = new Signals<Watched>(
      (waiting) => {
        told.push(waiting);
        for (const each of waiting === a ? [a, next, last] : [waiting]) signals.unwatch(each);
      },
      () => {},
    );
    for (const waiting of [a, next, b, last]) signals.watch(signal, waiting);
    controller.abort();
    expect(told).toEqual([a, b]);
    expect([a, next, b, last].every(({ watch }) => watch === undefined)).toBe(true);
  });

  it("tell nobody twice when one is told in the middle of telling, and watch anew who comes then", () => {
    const told: Watched[] = [];
    const { controller, signal, removed } = counted();
    const [a, b, late] = someWaiting(3);
    const signals: Signals<Watched> = new Signals<Watched>(
      (waiting) => {
        told.push(waiting);
        signals.unwatch(waiting);
        if (waiting === a) signals.watch(signal, late);
      },
      () => {},
    );
    for (const waiting of [a, b]) signals.watch(signal, waiting);
    controller.abort();
    expect(told).toEqual([a, b]);
    expect(late.watch).toBeDefined();
    signals.unwatch(late);
    expect(late.watch).toBeUndefined();
    expect(removed).toHaveBeenCalled();
  });

  it("tell nobody of another signal", () => {
    const { signals, told } = watched();
    const [one, other] = [counted(), counted()];
    const [a, b] = someWaiting(2);
    signals.watch(one.signal, a);
    signals.watch(other.signal, b);
    one.controller.abort();
    expect(told.map(({ waiting }) => waiting)).toEqual([a]);
    expect(other.removed).not.toHaveBeenCalled();
  });

  it("ignore those who are not watched, twice over", () => {
    const { signals } = watched();
    const { signal, removed } = counted();
    const [a, b] = someWaiting(2);
    signals.watch(signal, a);
    for (const waiting of [b, a, a]) signals.unwatch(waiting);
    expect(removed).toHaveBeenCalledTimes(1);
  });

  it("leave no listener behind after ten thousand waits", () => {
    const { signals } = watched();
    const { signal, added, removed } = counted();
    for (const waiting of someWaiting(10_000)) {
      signals.watch(signal, waiting);
      signals.unwatch(waiting);
    }
    expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([10_000, 10_000]);
  });

  it("keep nobody who has left, and a list of at most 64 places or four for each who waits", () => {
    const { signals } = watched();
    const { signal } = counted();
    const stuck = someWaiting(3);
    for (const waiting of stuck) signals.watch(signal, waiting);
    const [{ watch }] = stuck;
    for (const waiting of someWaiting(10_000)) {
      signals.watch(signal, waiting);
      signals.unwatch(waiting);
      expect(watch?.list.filter(Boolean).length).toBe(3);
      expect(watch?.list.length).toBeLessThanOrEqual(64);
    }
    expect(watch?.list.filter(Boolean)).toEqual(stuck);
  });
});
