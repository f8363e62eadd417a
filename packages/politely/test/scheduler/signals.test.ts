import { describe, expect, it, vi } from "vitest";
import { Terms } from "../../src/scheduler/lane.js";
import { Signals } from "../../src/scheduler/signals.js";

/** Signals that note who was told what, and an abort controller whose listeners are counted. */
function watched() {
  const told: { terms: Terms; reason: unknown }[] = [];
  const onDone = vi.fn<() => void>();
  const signals: Signals = new Signals((terms, reason) => {
    told.push({ terms, reason });
    signals.unwatch(terms);
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

function someTerms(count: number): Terms[] {
  return Array.from({ length: count }, () => new Terms(Number.POSITIVE_INFINITY, undefined, false));
}

describe("signals", () => {
  it("have one listener each, however many wait", () => {
    const { signals } = watched();
    const [one, other] = [counted(), counted()];
    for (const terms of someTerms(100)) signals.watch(one.signal, terms);
    for (const terms of someTerms(3)) signals.watch(other.signal, terms);
    expect([one.added.mock.calls.length, other.added.mock.calls.length]).toEqual([1, 1]);
  });

  it("lose it with the last who waits, in whatever order they leave, and get a new one after that", () => {
    const { signals } = watched();
    const { signal, added, removed } = counted();
    const [a, b, c, d] = someTerms(4);
    for (const terms of [a, b, c, d]) signals.watch(signal, terms);
    for (const terms of [b, a, d]) signals.unwatch(terms);
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
    const [a, b, c, gone] = someTerms(4);
    for (const terms of [a, gone, b, c]) signals.watch(signal, terms);
    signals.unwatch(gone);
    const reason = new Error("enough");
    controller.abort(reason);
    expect(told).toEqual([a, b, c].map((terms) => ({ terms, reason })));
    expect(told.every((each) => each.reason === reason)).toBe(true);
    expect([onDone.mock.calls.length, removed.mock.calls.length]).toEqual([1, 1]);
  });

  it("tell everybody who still waits, also when telling one takes others off", () => {
    const told: Terms[] = [];
    const { controller, signal } = counted();
    const [a, next, b, last] = someTerms(4);
    const signals: Signals = new Signals(
      (terms) => {
        told.push(terms);
        for (const each of terms === a ? [a, next, last] : [terms]) signals.unwatch(each);
      },
      () => {},
    );
    for (const terms of [a, next, b, last]) signals.watch(signal, terms);
    controller.abort();
    expect(told).toEqual([a, b]);
    expect([a, next, b, last].every(({ watch }) => watch === undefined)).toBe(true);
  });

  it("tell nobody twice when one is told in the middle of telling, and watch anew who comes then", () => {
    const told: Terms[] = [];
    const { controller, signal, removed } = counted();
    const [a, b, late] = someTerms(3);
    const signals: Signals = new Signals(
      (terms) => {
        told.push(terms);
        signals.unwatch(terms);
        if (terms === a) signals.watch(signal, late);
      },
      () => {},
    );
    for (const terms of [a, b]) signals.watch(signal, terms);
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
    const [a, b] = someTerms(2);
    signals.watch(one.signal, a);
    signals.watch(other.signal, b);
    one.controller.abort();
    expect(told.map(({ terms }) => terms)).toEqual([a]);
    expect(other.removed).not.toHaveBeenCalled();
  });

  it("ignore those who are not watched, twice over", () => {
    const { signals } = watched();
    const { signal, removed } = counted();
    const [a, b] = someTerms(2);
    signals.watch(signal, a);
    for (const terms of [undefined, b, a, a]) signals.unwatch(terms);
    expect(removed).toHaveBeenCalledTimes(1);
  });

  it("leave no listener behind after ten thousand waits", () => {
    const { signals } = watched();
    const { signal, added, removed } = counted();
    for (const terms of someTerms(10_000)) {
      signals.watch(signal, terms);
      signals.unwatch(terms);
    }
    expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([10_000, 10_000]);
  });
});
