import { describe, expect, it } from "vitest";
import {
  type OriginBehaviour,
  type OriginLimit,
  type OriginRetryAfter,
  VirtualClock,
  VirtualOrigin,
} from "../../src/testing/index.js";

const oncePerFiveSeconds: OriginLimit = { kind: "sliding-window", rate: "1/5s" };
const startMs = Date.UTC(2026, 0, 1);

/** The answer to a second request, 1.5 s after the first, which an origin with a window of 1 in 5 s refuses. */
async function refusal(behaviour: OriginBehaviour): Promise<Response> {
  const clock = new VirtualClock();
  const origin = new VirtualOrigin({ clock, limits: [oncePerFiveSeconds], ...behaviour });
  await origin.fetch("https://a.test/");
  await clock.advance(1_500);
  const response = origin.fetch("https://a.test/");
  await clock.advance(60_000);
  return response;
}

describe("Retry-After", () => {
  it.each<[string, OriginRetryAfter, string | null]>([
    ["true seconds, rounded up", "seconds", "4"],
    ["a true date, rounded up", "date", "Thu, 01 Jan 2026 00:00:05 GMT"],
    ["nothing", "absent", null],
    ["too little", { plusMs: -2_500 }, "1"],
    ["much too little", { plusMs: -9_000 }, "0"],
    ["too much", { plusMs: 31_500 }, "35"],
    ["zero", { text: "0" }, "0"],
    ["nonsense", { text: "soon" }, "soon"],
  ])("can say %s", async (_title, retryAfter, text) => {
    expect((await refusal({ refusal: { retryAfter } })).headers.get("retry-after")).toBe(text);
  });

  it("says true seconds when nothing else is asked for, and only on refusals", async () => {
    const origin = new VirtualOrigin({ clock: new VirtualClock(), limits: [oncePerFiveSeconds] });
    expect((await origin.fetch("https://a.test/")).headers.get("retry-after")).toBeNull();
    expect((await origin.fetch("https://a.test/")).headers.get("retry-after")).toBe("5");
  });

  it("counts from when the answer goes out", async () => {
    const { headers } = await refusal({ refusal: { latency: 1_000 } });
    expect(headers.get("retry-after")).toBe("3");
  });

  it("never says 0 when it tells the truth, however late the answer goes out", async () => {
    const { headers } = await refusal({ refusal: { latency: 10_000 } });
    expect(headers.get("retry-after")).toBe("1");
  });

  it("is absent when nobody can know, with a limit on concurrency", async () => {
    const clock = new VirtualClock();
    const limits: OriginLimit[] = [{ kind: "concurrency", count: 1 }];
    const origin = new VirtualOrigin({ clock, limits, latency: 50, refusal: { latency: 0 } });
    void origin.fetch("https://a.test/");
    const { status, headers } = await origin.fetch("https://a.test/");
    expect([status, headers.get("retry-after")]).toEqual([429, null]);
  });

  it("is true: who waits so long from the answer on is let in", async () => {
    const clock = new VirtualClock();
    const limits: OriginLimit[] = [
      { kind: "leaky-bucket", rate: "20/min", nodelay: true, burst: 1 },
      { kind: "token-bucket", rate: "7/10s", burst: 2 },
    ];
    const origin = new VirtualOrigin({ clock, limits, latency: 130 });
    let refused = 0;
    const visit = async (): Promise<void> => {
      for (let visits = 0; visits < 40; visits += 1) {
        const { status, headers } = await origin.fetch("https://a.test/");
        if (status === 200) continue;
        refused += 1;
        const waitMs = Number(headers.get("retry-after")) * 1_000;
        await new Promise<void>((resolve) => clock.setTimer(clock.now() + waitMs, resolve));
        expect((await origin.fetch("https://a.test/")).status).toBe(200);
      }
    };
    const done = visit();
    await clock.runToEnd();
    await done;
    expect(refused).toBeGreaterThan(10);
    expect(origin.arrivalsBeforeRetryAfter).toBe(0);
  });
});

describe("arrivals before the time of Retry-After is over", () => {
  it("are counted from the moment it was said, by what was said", async () => {
    const clock = new VirtualClock();
    const limits: OriginLimit[] = [{ kind: "sliding-window", rate: "1/s" }];
    const refusal = { latency: 100, retryAfter: { text: "2" } } as const;
    const origin = new VirtualOrigin({ clock, limits, refusal });
    const at = async (atMs: number): Promise<number> => {
      await clock.advance(atMs - clock.now());
      void origin.fetch("https://a.test/");
      return origin.arrivalsBeforeRetryAfter;
    };
    expect(await at(0)).toBe(0);
    expect(await at(10)).toBe(0);
    // On its way already when the refusal goes out at 110 ms: nobody could know.
    expect(await at(109)).toBe(0);
    expect(await at(1_500)).toBe(1);
    // Said at 209 ms by the refusal of 109 ms.
    expect(await at(2_208)).toBe(2);
    // Refused once more, and told at 2,308 ms.
    expect(await at(4_307)).toBe(3);
    expect(await at(4_308)).toBe(3);
  });

  it("are those of the client that was told", async () => {
    const clock = new VirtualClock();
    const limits: OriginLimit[] = [{ kind: "sliding-window", rate: "1/min", countBy: { header: "key" } }];
    const origin = new VirtualOrigin({ clock, limits });
    for (const key of ["a", "a", "b"]) await origin.fetch("https://a.test/", { headers: { key } });
    expect(origin.arrivalsBeforeRetryAfter).toBe(0);
    await origin.fetch("https://a.test/", { headers: { key: "a" } });
    expect(origin.arrivalsBeforeRetryAfter).toBe(1);
  });

  it("are counted for answers of a script too, dates included", async () => {
    const clock = new VirtualClock();
    const answers = [{ status: 503, headers: { "Retry-After": "Thu, 01 Jan 2026 00:00:10 GMT" } }];
    const origin = new VirtualOrigin({ clock, answers });
    await origin.fetch("https://a.test/");
    await clock.advance(9_999);
    await origin.fetch("https://a.test/");
    await clock.advance(1);
    await origin.fetch("https://a.test/");
    expect(origin.arrivalsBeforeRetryAfter).toBe(1);
  });
});

describe("the wall clock of an origin", () => {
  it("runs with its own skew, in Date and in the dates and Unix times it says", async () => {
    const { headers } = await refusal({
      wallSkewMs: 3_600_000,
      refusal: { retryAfter: "date" },
      quotaHeaders: { families: ["x"], resetAs: "epoch" },
    });
    expect(headers.get("date")).toBe("Thu, 01 Jan 2026 01:00:01 GMT");
    expect(headers.get("retry-after")).toBe("Thu, 01 Jan 2026 01:00:05 GMT");
    expect(headers.get("x-ratelimit-reset")).toBe(String((startMs + 3_605_000) / 1_000));
  });

  it("does not follow a client whose clock is set", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({ clock });
    clock.shiftWall(-86_400_000);
    await clock.advance(2_000);
    expect((await origin.fetch("https://a.test/")).headers.get("date")).toBe("Thu, 01 Jan 2026 00:00:02 GMT");
  });
});

describe("the status of a refusal", () => {
  const statuses = async (behaviour: OriginBehaviour): Promise<readonly number[]> => {
    const origin = new VirtualOrigin({ clock: new VirtualClock(), ...behaviour });
    for (let index = 0; index < 5; index += 1) await origin.fetch("https://a.test/");
    return origin.requests.map(({ status }) => status ?? 0);
  };

  it("is 429, or what is asked for", async () => {
    expect(await statuses({ limits: [oncePerFiveSeconds] })).toEqual([200, 429, 429, 429, 429]);
    const limits = [oncePerFiveSeconds];
    expect(await statuses({ limits, refusal: { status: 503 } })).toEqual([200, 503, 503, 503, 503]);
  });

  it("may change after some refusals", async () => {
    const refusal = { status: [429, 429, 403] };
    expect(await statuses({ limits: [oncePerFiveSeconds], refusal })).toEqual([200, 429, 429, 403, 403]);
  });
});

describe("the fields about quotas", () => {
  const limits: OriginLimit[] = [
    { kind: "fixed-window", rate: "10/min", name: "minute" },
    { kind: "token-bucket", rate: "2/s", burst: 4, name: "burst" },
    { kind: "concurrency", count: 5 },
  ];

  /** The fields of the answer to the last of three requests at once, 12.3 s after midnight. */
  async function fields(behaviour: OriginBehaviour): Promise<Record<string, string>> {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({ clock, limits, ...behaviour });
    await clock.advance(12_300);
    const answers = [1, 2, 3].map(() => origin.fetch("https://a.test/"));
    const entries = [...(await Promise.all(answers))[2].headers].filter(([name]) => name.includes("ratelimit"));
    return Object.fromEntries(entries);
  }

  it("may be a list with each limit by its name", async () => {
    expect(await fields({ quotaHeaders: { families: ["list"] } })).toEqual({
      "ratelimit-policy": '"minute";q=10;w=60, "burst";q=4;w=2',
      // 47.7 s of the minute are left; 3 tokens are back in 1.5 s.
      ratelimit: '"minute";r=7;t=48, "burst";r=1;t=2',
    });
  });

  it("may be three fields of the limit that has the least left, with the seconds until it is whole again", async () => {
    expect(await fields({ quotaHeaders: { families: ["triple"] } })).toEqual({
      "ratelimit-limit": "4",
      "ratelimit-remaining": "1",
      "ratelimit-reset": "2",
      "ratelimit-policy": "4;w=2",
    });
  });

  it("may be the older three, with Unix time in seconds or milliseconds", async () => {
    const x = { "x-ratelimit-limit": "4", "x-ratelimit-remaining": "1" };
    const at = (ms: number): string => String(startMs + ms);
    const seconds = await fields({ quotaHeaders: { families: ["x"], resetAs: "epoch" } });
    expect(seconds).toEqual({ ...x, "x-ratelimit-reset": String((startMs + 14_000) / 1_000) });
    const milliseconds = await fields({ quotaHeaders: { families: ["x"], resetAs: "epoch-ms" } });
    expect(milliseconds).toEqual({ ...x, "x-ratelimit-reset": at(13_800) });
  });

  it("may be of several families at once, and say the same of refusals", async () => {
    const both = await fields({ quotaHeaders: { families: ["list", "triple", "x"] } });
    expect(Object.keys(both)).toHaveLength(8);
    expect(both["ratelimit-policy"]).toContain('"minute"');
    const { headers } = await refusal({ quotaHeaders: { families: ["x"] } });
    expect([headers.get("x-ratelimit-remaining"), headers.get("x-ratelimit-reset")]).toEqual(["0", "4"]);
  });

  it("are of the limit that resets last, where several have nothing left", async () => {
    const short: OriginLimit = { kind: "sliding-window", rate: "1/5s" };
    const long: OriginLimit = { kind: "sliding-window", rate: "1/20s" };
    for (const both of [
      [short, long],
      [long, short],
    ]) {
      const { "x-ratelimit-reset": reset } = await fields({ limits: both, quotaHeaders: { families: ["x"] } });
      expect(reset).toBe("20");
    }
  });

  it("say what remains of a leaky bucket and of a sliding window", async () => {
    const leaky: OriginLimit = { kind: "leaky-bucket", rate: "2/s", burst: 4, nodelay: true, name: "leaky" };
    const sliding: OriginLimit = { kind: "sliding-window", rate: "4/10s", name: "sliding" };
    expect(await fields({ limits: [leaky, sliding], quotaHeaders: { families: ["list"] } })).toEqual({
      "ratelimit-policy": '"leaky";q=5;w=3, "sliding";q=4;w=10',
      // Three came: excess 2,000, of which with one more 3,000 leak out in 1.5 s.
      ratelimit: '"leaky";r=2;t=2, "sliding";r=1;t=10',
    });
  });

  it("are absent where no limit has something to tell", async () => {
    const quotaHeaders = { families: ["list", "triple", "x"] } as const;
    expect(await fields({ limits: [{ kind: "concurrency", count: 9 }], quotaHeaders })).toEqual({});
  });
});
