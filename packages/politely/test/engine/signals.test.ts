import { describe, expect, it, vi } from "vitest";
import type { Waiter } from "../../src/engine/lanes.js";
import { Signals } from "../../src/engine/signals.js";

/** Signals that note who was told what, and an abort controller whose listeners are counted. */
function watched() {
  const told: { waiting: Waiter; reason: unknown }[] = [];
  const onDone = vi.fn<() => void>();
  const signals: Signals = new Signals((waiting, reason) => {
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

/** Requests that wait with a signal, as far as signals know them. */
function someWaiting(signal: AbortSignal, count: number): Waiter[] {
  return Array.from({ length: count }, () => ({ options: { signal } }) as Waiter);
}

describe("signals", () => {
  it("have one listener each, however many wait", () => {
    const { signals } = watched();
    const [one, other] = [counted(), counted()];
    for (const waiting of someWaiting(one.signal, 100)) signals.watch(waiting);
    for (const waiting of someWaiting(other.signal, 3)) signals.watch(waiting);
    expect([one.added.mock.calls.length, other.added.mock.calls.length]).toEqual([1, 1]);
  });

  it("lose it with the last who waits, in whatever order they leave, and get a new one after that", () => {
    const { signals } = watched();
    const { signal, added, removed } = counted();
    const [a, b, c, d] = someWaiting(signal, 4);
    for (const waiting of [a, b, c, d]) signals.watch(waiting);
    for (const waiting of [b, a, d]) signals.unwatch(waiting);
    expect(removed).not.toHaveBeenCalled();
    signals.unwatch(c);
    expect(removed.mock.calls).toEqual([["abort", added.mock.calls[0][1]]]);
    signals.watch(a);
    expect(added).toHaveBeenCalledTimes(2);
  });

  it("tell everybody who waits, in order of arrival and with the reason, then that this was all", () => {
    const { signals, told, onDone } = watched();
    const { controller, signal, removed } = counted();
    const [a, b, c, gone] = someWaiting(signal, 4);
    for (const waiting of [a, gone, b, c]) signals.watch(waiting);
    signals.unwatch(gone);
    const reason = new Error("enough");
    controller.abort(reason);
    expect(told).toEqual([a, b, c].map((waiting) => ({ waiting, reason })));
    expect(told.every((each) => each.reason === reason)).toBe(true);
    expect([onDone.mock.calls.length, removed.mock.calls.length]).toEqual([1, 1]);
  });

  it("tell everybody who still waits, also when telling one takes others off", () => {
    const told: Waiter[] = [];
    const { controller, signal } = counted();
    const [a, next, b, last] = someWaiting(signal, 4);
    const signals: Signals = new Signals(
      (waiting) => {
        told.push(waiting);
        for (const each of waiting === a ? [a, next, last] : [waiting]) signals.unwatch(each);
      },
      () => {},
    );
    for (const waiting of [a, next, b, last]) signals.watch(waiting);
    controller.abort();
    expect(told).toEqual([a, b]);
  });

  it("tell nobody twice when one is told in the middle of telling, and tell who comes then", () => {
    const told: Waiter[] = [];
    const { controller, signal, removed } = counted();
    const [a, b, late] = someWaiting(signal, 3);
    const signals: Signals = new Signals(
      (waiting) => {
        told.push(waiting);
        signals.unwatch(waiting);
        if (waiting === a) signals.watch(late);
      },
      () => {},
    );
    for (const waiting of [a, b]) signals.watch(waiting);
    controller.abort();
    expect(told).toEqual([a, b, late]);
    expect(removed).toHaveBeenCalled();
  });

  it("tell nobody of another signal", () => {
    const { signals, told } = watched();
    const [one, other] = [counted(), counted()];
    const [[a], [b]] = [someWaiting(one.signal, 1), someWaiting(other.signal, 1)];
    signals.watch(a);
    signals.watch(b);
    one.controller.abort();
    expect(told.map(({ waiting }) => waiting)).toEqual([a]);
    expect(other.removed).not.toHaveBeenCalled();
  });

  it("ignore those who are not watched, twice over", () => {
    const { signals } = watched();
    const { signal, removed } = counted();
    const [a, b] = someWaiting(signal, 2);
    signals.watch(a);
    for (const waiting of [b, a, a]) signals.unwatch(waiting);
    expect(removed).toHaveBeenCalledTimes(1);
  });

  it("leave no listener behind after ten thousand waits", () => {
    const { signals } = watched();
    const { signal, added, removed } = counted();
    for (const waiting of someWaiting(signal, 10_000)) {
      signals.watch(waiting);
      signals.unwatch(waiting);
    }
    expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([10_000, 10_000]);
  });
});
