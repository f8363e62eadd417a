import { describe, expect, it } from "vitest";
import { type OriginLimit, VirtualClock, VirtualOrigin } from "../../src/testing/index.js";

/** An arrival, and what it should get: let in, let in after being held back for so many milliseconds, or refused with this true wait. */
type Row = readonly [atMs: number, expected: "in" | { readonly heldBackMs: number } | number];

/** Sends one request per row and compares each answer, naming the row that differs. */
async function play(limits: readonly OriginLimit[], rows: readonly Row[]): Promise<VirtualOrigin> {
  const clock = new VirtualClock();
  const origin = new VirtualOrigin({ clock, limits });
  for (const [atMs] of rows) {
    await clock.advance(atMs - clock.now());
    void origin.fetch("https://a.test/");
  }
  const seen = origin.requests.map(({ atMs, refusedBy, heldBackMs, trueWaitMs }): Row => {
    if (refusedBy !== undefined) return [atMs, trueWaitMs];
    return [atMs, heldBackMs > 0 ? { heldBackMs } : "in"];
  });
  expect(seen).toEqual(rows);
  return origin;
}

describe("a leaky bucket", () => {
  it("without a burst lets in one request each 500 ms at 2/s, counted from the last that was let in", async () => {
    await play(
      [{ kind: "leaky-bucket", rate: "2/s" }],
      [
        [0, "in"],
        [0, 500],
        [499, 1],
        [500, "in"],
        [600, 400],
        [1_700, "in"],
        [2_199, 1],
        [2_200, "in"],
      ],
    );
  });

  it("with burst 2 and nodelay lets in three at once, then one each 500 ms", async () => {
    await play(
      [{ kind: "leaky-bucket", rate: "2/s", burst: 2, nodelay: true }],
      [
        [0, "in"],
        [0, "in"],
        [0, "in"],
        [0, 500],
        [500, "in"],
        [500, 500],
        [1_500, "in"],
        [1_500, "in"],
        [1_500, 500],
      ],
    );
  });

  it("with burst 2 holds the excess back to keep the rate", async () => {
    await play(
      [{ kind: "leaky-bucket", rate: "2/s", burst: 2 }],
      [
        [0, "in"],
        [0, { heldBackMs: 500 }],
        [0, { heldBackMs: 1_000 }],
        [0, 500],
        // 400 ms leak 800 of the 2,000 of excess: 1,200 + 1,000 is above the burst.
        [400, 100],
        [600, { heldBackMs: 900 }],
      ],
    );
  });

  it("rounds as nginx does: 20 a minute is 333 thousandths a second, and 1 ms at that rate leaks nothing", async () => {
    await play(
      [{ kind: "leaky-bucket", rate: "20/min" }],
      [
        [0, "in"],
        // 1,000 thousandths at 333 a second take 3,004 ms, not 3,000.
        [3_000, 4],
        [3_003.999, 0.001],
        [3_004, "in"],
      ],
    );
  });

  it("looks at whole milliseconds only", async () => {
    await play(
      [{ kind: "leaky-bucket", rate: "1000/s" }],
      [
        [0.9, "in"],
        [0.95, 0.05],
        [1, "in"],
      ],
    );
  });
});

describe("a fixed window", () => {
  it("cuts windows at multiples of its length on the wall clock, and lets two windows' worth come in a row", async () => {
    await play(
      [{ kind: "fixed-window", rate: "2/s" }],
      [
        [900, "in"],
        [950, "in"],
        [999, 1],
        [1_000, "in"],
        [1_001, "in"],
        [1_002, 998],
        [2_000, "in"],
      ],
    );
  });
});

describe("a sliding window", () => {
  it("lets in so many in every interval that is open on the left", async () => {
    await play(
      [{ kind: "sliding-window", rate: "2/s" }],
      [
        [0, "in"],
        [900, "in"],
        [999.999, 0.001],
        [1_000, "in"],
        [1_000, 900],
        [1_900, "in"],
      ],
    );
  });

  it("does not count what it refuses", async () => {
    await play(
      [{ kind: "sliding-window", rate: "1/s" }],
      [
        [0, "in"],
        [500, 500],
        [999, 1],
        [1_000, "in"],
      ],
    );
  });
});

describe("a token bucket", () => {
  it("starts full, then gives one token each third of a second, never a microsecond early", async () => {
    await play(
      [{ kind: "token-bucket", rate: "3/s", burst: 3 }],
      [
        [0, "in"],
        [0, "in"],
        [0, "in"],
        [0, 333.334],
        [333.333, 0.001],
        [333.334, "in"],
        [666.666, 0.001],
        [1_000, "in"],
        // By now three tokens have come back, and one of them was taken.
        [1_000, "in"],
        [1_000, 333.334],
      ],
    );
  });

  it("saves up no more than its burst", async () => {
    await play(
      [{ kind: "token-bucket", rate: "1/s", burst: 2 }],
      [
        [60_000, "in"],
        [60_000, "in"],
        [60_000, 1_000],
      ],
    );
  });
});

describe("a penalty box", () => {
  it("bans who comes once too often, and longer for each call during the ban", async () => {
    const origin = await play(
      [{ kind: "penalty-box", rate: "2/s", banMs: 10_000, lengthenMs: 5_000 }],
      [
        [0, "in"],
        [100, "in"],
        [200, 10_000],
        [5_000, 10_200],
        [15_199, 5_001],
        [20_200, "in"],
        [20_200, "in"],
        [20_201, 10_000],
      ],
    );
    expect(origin.arrivalsDuringBan).toBe(2);
  });

  it("never makes a ban longer than a day from the call on", async () => {
    await play(
      [{ kind: "penalty-box", rate: "1/s", banMs: 1_000, lengthenMs: 80_000_000 }],
      [
        [0, "in"],
        [0, 1_000],
        [0, 80_001_000],
        [0, 86_400_000],
        [1, 86_400_000],
        [86_400_001, "in"],
      ],
    );
  });
});

describe("a limit on concurrency", () => {
  it("refuses while so many are in flight, and lets in at the instant one ends", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({ clock, latency: 100, limits: [{ kind: "concurrency", count: 2 }] });
    const statuses: number[] = [];
    const call = (): void => void origin.fetch("https://a.test/").then(({ status }) => statuses.push(status));
    for (const atMs of [0, 50, 60, 100, 101]) clock.setTimer(atMs, call);
    await clock.runToEnd();
    expect(origin.requests.map(({ status }) => status)).toEqual([200, 200, 429, 200, 429]);
    expect(origin.requests[2].trueWaitMs).toBe(Number.POSITIVE_INFINITY);
    // A refused request is in flight, too, until it has its answer.
    expect(origin.peakInFlight).toBe(4);
    expect(statuses).toEqual([200, 200, 429, 200, 429]);
  });

  it("holds a place until the last byte is sent or the client goes away", async () => {
    const clock = new VirtualClock();
    const limits: OriginLimit[] = [{ kind: "concurrency", count: 1 }];
    const origin = new VirtualOrigin({ clock, limits, pages: { "/slow": { body: "0123456789", bodyMs: 1_000 } } });
    const controller = new AbortController();
    const gone = origin.fetch("https://a.test/slow", { signal: controller.signal }).then((response) => response.text());
    await clock.advance(500);
    await origin.fetch("https://a.test/slow");
    controller.abort(new Error("enough"));
    await expect(gone).rejects.toThrow("enough");
    await origin.fetch("https://a.test/slow");
    await clock.advance(999);
    await origin.fetch("https://a.test/slow");
    await clock.advance(1);
    await origin.fetch("https://a.test/slow");
    expect(origin.requests.map(({ status }) => status)).toEqual([200, 429, 200, 429, 200]);
  });
});

describe("several limits", () => {
  it("let a request in together or not at all, and a refusal counts in none", async () => {
    const origin = await play(
      [
        { kind: "sliding-window", rate: "1/s", name: "second" },
        { kind: "sliding-window", rate: "3/min", name: "minute" },
      ],
      [
        [0, "in"],
        [0, 1_000],
        [0, 1_000],
        [0, 1_000],
        [1_000, "in"],
        [2_000, "in"],
        // Both refuse: the first is named, and the longer wait is the true one.
        [2_500, 57_500],
        [3_000, 57_000],
        [60_000, "in"],
      ],
    );
    expect(origin.requests.map(({ refusedBy }) => refusedBy)).toEqual([
      undefined,
      "second",
      "second",
      "second",
      undefined,
      undefined,
      "second",
      "minute",
      undefined,
    ]);
  });

  it("hold a request back for the longest that one of them asks for", async () => {
    await play(
      [
        { kind: "leaky-bucket", rate: "10/s", burst: 5 },
        { kind: "leaky-bucket", rate: "2/s", burst: 5 },
      ],
      [
        [0, "in"],
        [0, { heldBackMs: 500 }],
      ],
    );
  });
});

describe("what is counted together", () => {
  it("is a host, and each host has its own count", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({ clock, limits: [{ kind: "sliding-window", rate: "1/s" }] });
    const statuses = await Promise.all(
      ["https://a.test/", "http://A.test.:8080/x", "https://b.test/"].map(
        async (url) => (await origin.fetch(url)).status,
      ),
    );
    expect(statuses).toEqual([200, 429, 200]);
    expect([origin.host("a.test").total, origin.host("B.TEST").total, origin.host("c.test").total]).toEqual([2, 1, 0]);
    expect([origin.host("a.test").refused, origin.refused]).toEqual([1, 1]);
  });

  it("is the value of a header when asked, and who sends none shares one count", async () => {
    const clock = new VirtualClock();
    const limits: OriginLimit[] = [{ kind: "sliding-window", rate: "1/s", countBy: { header: "X-Api-Key" } }];
    const origin = new VirtualOrigin({ clock, limits });
    const call = async (headers: Record<string, string>): Promise<number> =>
      (await origin.fetch("https://a.test/", { headers })).status;
    expect(await call({ "x-api-key": "one" })).toBe(200);
    expect(await call({ "X-API-KEY": "one" })).toBe(429);
    expect(await call({ "x-api-key": "two" })).toBe(200);
    expect(await call({})).toBe(200);
    expect(await call({})).toBe(429);
  });
});
