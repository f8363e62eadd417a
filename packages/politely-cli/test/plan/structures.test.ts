import { PassThrough } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { countUrls } from "../../src/plan/countUrls.js";
import { densityOf } from "../../src/plan/density.js";
import { InstantHeap } from "../../src/plan/instantHeap.js";
import { ProgressLine } from "../../src/plan/progressLine.js";
import { SeenTexts } from "../../src/plan/seenTexts.js";

describe("an instant heap", () => {
  it("gives back what was added in order of instant, then of rank", () => {
    const entries = fc.array(fc.record({ at: fc.nat(5), isTaken: fc.boolean() }));
    fc.assert(
      fc.property(entries, (steps) => {
        const heap = new InstantHeap();
        let model: { item: number; at: number }[] = [];
        for (const [item, { at, isTaken }] of steps.entries()) {
          heap.add(item, at, item);
          model = [...model, { item, at }].sort((a, b) => a.at - b.at || a.item - b.item);
          expect([heap.firstAt, heap.firstRank, heap.size]).toEqual([model[0].at, model[0].item, model.length]);
          const taken = isTaken ? [heap.take(), model.shift()?.item] : [0, 0];
          expect(taken[0]).toBe(taken[1]);
        }
        for (const { item } of model) expect(heap.take()).toBe(item);
        expect([heap.take(), heap.firstAt, heap.size]).toEqual([-1, Number.POSITIVE_INFINITY, 0]);
      }),
      seeded(200),
    );
  });
});

describe("seen texts", () => {
  it("tell what is new, over several growths of the table", () => {
    const seen = new SeenTexts(1_000_000);
    const texts = Array.from({ length: 20_000 }, (_, index) => `https://h${index % 7}.org/${index}`);
    expect(texts.filter((text) => seen.add(text)).length).toBe(20_000);
    expect(texts.filter((text) => seen.add(text)).length).toBe(0);
  });

  it("take everything for new once they are full, but what they have", () => {
    const seen = new SeenTexts(2);
    expect(["a", "b", "c", "c", "a"].map((text) => seen.add(text))).toEqual([true, true, true, true, false]);
  });
});

describe("counting a list", () => {
  async function* listed(...urls: string[]) {
    for (const [index, url] of urls.entries()) yield { url, source: "x", line: index + 1 };
  }

  it("counts by the policy's keys, each URL once, in the order of the list", async () => {
    const urls = listed(
      "https://b.org/1",
      "http://a.org/",
      "https://b.org:8443/1",
      "https://b.org/1",
      "https://b.org/2",
    );
    const { counts, duplicates } = await countUrls(urls, { hosts: { "b.org:8443": { rate: "1/s" } } });
    expect([...counts]).toEqual([
      ["b.org", 2],
      ["a.org", 1],
      ["b.org:8443", 1],
    ]);
    expect(duplicates).toBe(1);
  });

  it("groups by domain when the policy says so", async () => {
    const urls = listed("https://a.example.co.uk/", "https://b.example.co.uk/");
    expect([...(await countUrls(urls, { groupBy: "domain" })).counts]).toEqual([["example.co.uk", 2]]);
  });
});

describe("the progress line", () => {
  const shown = (isTerminal: boolean): string => {
    const stderr = new PassThrough();
    let nowMs = 0;
    const line = new ProgressLine({ stderr, isTerminal, columns: 10 }, () => nowMs);
    for (const ms of [1_999, 2_000, 2_100, 2_200]) {
      nowMs = ms;
      line.show(`at ${ms} of many`);
    }
    line.clear();
    return String(stderr.read() ?? "");
  };

  it("shows up after two seconds, five times a second, cut to the terminal, and goes away", () => {
    expect(shown(true)).toBe("\r\u001b[Kat 2000 o\r\u001b[Kat 2200 o\r\u001b[K");
  });

  it("is not there without a terminal", () => {
    expect(shown(false)).toBe("");
  });
});

describe("density", () => {
  const host = { key: "a", requests: 4, origin: "default", binds: undefined };

  it("is even for an even pace, and -1 after the end", () => {
    const plan = { ...host, starts: Float64Array.of(0, 1, 2, 3), endsAtMs: 4 };
    expect(densityOf(plan, 8, 8)).toEqual([1, 1, 1, 1, -1, -1, -1, -1]);
    expect(densityOf(plan, 8, 2)).toEqual([1, -1]);
  });

  it("shows a burst and the quiet after it", () => {
    const [first, ...rest] = densityOf({ ...host, starts: Float64Array.of(0, 0, 0, 10), endsAtMs: 10.5 }, 10.5, 5);
    expect(first).toBe(1);
    for (const part of rest.slice(0, 3)) expect(part).toBeLessThan(0.2);
  });
});
