import { describe, expect, it } from "vitest";
import {
  type Limits,
  limit,
  type Messages,
  type Permit,
  type PolicyInput,
  type Rate,
  type Stats,
} from "../../src/index.js";
import { granted, keyRig, many, rig, track } from "../verbs/support.js";

// What independent tests of the first design found, each in words, as the second design mends it.

const host = "a.example";
const all = (limits: Limits): PolicyInput => ({ default: limits });

function startsAtOnce(limiter: ReturnType<typeof keyRig>["limiter"], most = 1_000): number {
  let count = 0;
  while (count < most && limiter.tryAcquire() !== undefined) count += 1;
  return count;
}

describe("a window with a fraction as its count", () => {
  it.each<[Rate, number, number]>([
    ["54.9/min", 54, 60_000],
    ["0.3/s", 1, 3_334],
    [{ count: 1 / 3, per: "1s" }, 1, 3_001],
    [{ count: 40 / 60, per: "1s" }, 1, 1_501],
    [{ count: Math.PI, per: "1s" }, 3, 1_000],
  ])("is rounded down, never up: %j lets %i through, and the next after %i ms", async (window, atOnce, nextMs) => {
    const { clock, limiter } = keyRig({ window });
    expect(startsAtOnce(limiter)).toBe(atOnce);
    expect(limiter.check().waitMs).toBe(nextMs);
    await clock.advance(nextMs);
    expect(startsAtOnce(limiter)).toBe(atOnce);
  });

  it.each<[Rate, number]>([
    [{ count: 1 / 3, per: "1s" }, 3_000],
    [{ count: 40 / 60, per: "1s" }, 1_500],
    [{ count: Math.PI, per: "1s" }, 318.31],
    [{ count: 1 / 3, per: "1d" }, 259_200_000],
  ])(
    "may be given as a rate, too: %j is a start each %f ms, to the microsecond, with a burst as well",
    (rate, everyMs) => {
      for (const burst of [1, 100]) {
        const { limiter } = keyRig({ rate, burst });
        expect(startsAtOnce(limiter)).toBe(burst);
        expect(limiter.explain().waitMs).toBeGreaterThanOrEqual(everyMs - 0.001);
        expect(limiter.explain().waitMs).toBeLessThanOrEqual(everyMs + 0.001);
      }
    },
  );
});

describe("a kind of limit that is new to a key", () => {
  it("counts what a bucket owes as starts: from a rate to a window", () => {
    const { limiter } = keyRig({ rate: "1/s", burst: 5 });
    expect(startsAtOnce(limiter)).toBe(5);
    limiter.configure({ window: "5/min" });
    expect(startsAtOnce(limiter)).toBe(0);
    expect(limiter.check().waitMs).toBe(60_000);
  });

  it("counts what a log knows: from a window to a rate", async () => {
    const { clock, limiter } = keyRig({ window: "5/min" });
    expect(startsAtOnce(limiter)).toBe(5);
    await clock.advance(2_000);
    limiter.configure({ rate: "1/s", burst: 5 });
    // Two seconds have paid for two.
    expect(startsAtOnce(limiter)).toBe(2);
  });

  it("counts the last start, also where it has left all windows there were: from a short to a long one", async () => {
    const { clock, limiter } = keyRig({ window: "1/100ms" });
    granted(limiter.tryAcquire()).release();
    await clock.advance(1_000);
    for (const window of ["1/100ms", "1/100ms", "1/5s"] as const) limiter.configure({ window });
    expect(limiter.check().waitMs).toBe(4_000);
  });

  it("counts those in flight, each from its start: from places to a window", async () => {
    const { clock, limiter } = keyRig({ concurrency: 5 });
    granted(limiter.tryAcquire());
    await clock.advance(10_000);
    expect(startsAtOnce(limiter)).toBe(4);
    limiter.configure({ window: "5/min" });
    expect(startsAtOnce(limiter)).toBe(0);
    expect(limiter.check().waitMs).toBe(50_000);
  });

  it("counts what those in flight cost, so that one that is returned takes no other with it", () => {
    const { limiter } = keyRig({ concurrency: 5 });
    const heavy = granted(limiter.tryAcquire({ cost: 2 }));
    granted(limiter.tryAcquire());
    limiter.configure({ window: "3/min" });
    expect(startsAtOnce(limiter)).toBe(0);
    heavy.release("unused");
    expect(startsAtOnce(limiter)).toBe(2);
  });

  it("counts requests where it does not know what they cost, and takes no other out with one that is returned", () => {
    const { limiter } = keyRig({ minDelay: 0 });
    granted(limiter.tryAcquire());
    const heavy = granted(limiter.tryAcquire({ cost: 2 }));
    limiter.configure({ window: "3/min" });
    heavy.release("unused");
    expect(startsAtOnce(limiter)).toBe(2);
  });

  it("counts those in flight that no limit has followed, at the last start", async () => {
    const { clock, limiter } = keyRig({ minDelay: 1 });
    for (let start = 0; start < 3; start++) {
      granted(limiter.tryAcquire());
      await clock.advance(1);
    }
    limiter.configure({ window: "3/min" });
    expect(startsAtOnce(limiter)).toBe(0);
  });
});

describe("a start recorded with an instant before the newest one", () => {
  it("counts at its own instant, in what check and stats say as well", async () => {
    const { clock, limiter } = keyRig({ window: "3/10s" });
    await clock.advance(8_000);
    granted(limiter.tryAcquire()).release();
    await clock.advance(1_000);
    limiter.record("success", { startedAtMs: 2_000 });
    expect(limiter.stats().window).toMatchObject({ calls: 2, remaining: 1, oldestLeavesMs: 3_000 });
    granted(limiter.tryAcquire());
    expect(limiter.check().waitMs).toBe(3_000);
    await clock.advance(3_000);
    expect(limiter.stats().window).toMatchObject({ calls: 2, remaining: 1, nextFreeMs: 0, oldestLeavesMs: 6_000 });
  });
});

describe("several permits returned unused", () => {
  it.each([
    ["newest first", true],
    ["oldest first", false],
  ])("give back all units of their bucket: %s", async (_, isNewestFirst) => {
    const { limiter } = keyRig({ rate: "1/h", burst: 10 });
    const permits = many(10, () => granted(limiter.tryAcquire()));
    for (const permit of isNewestFirst ? permits.reverse() : permits) permit.release("unused");
    expect(limiter.stats().tokens).toBe(10);
    expect(startsAtOnce(limiter)).toBe(10);
  });

  it.each([
    ["newest first", true],
    ["oldest first", false],
  ])("give all of theirs back also where one among them was sent: %s", async (_, isNewestFirst) => {
    for (const sent of many(10, (index) => index)) {
      const { clock, limiter } = keyRig({ rate: "1/h", burst: 10, minDelay: "1s" });
      const permits: Permit[] = [];
      for (let start = 0; start < 10; start++, await clock.advance(1_000)) permits.push(granted(limiter.tryAcquire()));
      const unused = permits.filter((_permit, index) => index !== sent);
      for (const permit of isNewestFirst ? unused.reverse() : unused) permit.release("unused");
      // Only the one that was sent is owed, and it was the last start.
      expect(limiter.stats().tokens).toBeGreaterThanOrEqual(9);
      expect(limiter.elapsedMs()).toBe((10 - sent) * 1_000);
    }
  });

  it("leave nothing behind that a later start could be mistaken for", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    const next = async (): Promise<Permit> => {
      await clock.advance(1_000);
      return granted(limiter.tryAcquire());
    };
    const [, second, third] = [await next(), await next(), await next()];
    second.release("unused");
    third.release("unused");
    const [, fifth] = [await next(), await next()];
    fifth.release("unused");
    // The fourth is the last one.
    expect(limiter.elapsedMs()).toBe(1_000);
  });
});

describe("one incident", () => {
  it("raises the step once, also when its last answer comes after the probe's success", async () => {
    const { clock, limiter } = keyRig({ backoff: { kind: "linear", base: "5s", max: "30s" } });
    const [first, second] = [granted(limiter.tryAcquire()), granted(limiter.tryAcquire())];
    await clock.advance(1_000);
    first.release("timeout");
    await clock.advance(5_000);
    granted(limiter.tryAcquire()).release("success");
    second.release("timeout");
    expect(limiter.check().waitMs).toBe(5_000);
    await clock.advance(5_000);
    // The next incident is the first of its series, not the second.
    granted(limiter.tryAcquire()).release("timeout");
    expect(limiter.check().waitMs).toBe(5_000);
  });
});

describe("a refused deadline", () => {
  it("has a reason with the very wait that it tells, with priorities too", async () => {
    const { limiter } = rig(all({ rate: "1/10s" }));
    granted(limiter.tryAcquire(host));
    many(9, () => track(limiter.acquire(host)));
    const error: unknown = await limiter.acquire(host, { priority: 1, maxWait: 1 }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: "POLITELY_DEADLINE",
      waitMs: 10_000,
      reason: `${host}: rate 1/10s, 10 s to go`,
    });
  });

  it.each<{ title: string; limits: Limits; reason: string }>([
    { title: "a bucket", limits: { rate: "1/s", burst: 10 }, reason: `${host}: rate 1/s burst 10, 10 s to go` },
    {
      title: "a window that has room for one",
      limits: { window: "11/10s" },
      reason: `${host}: window 11/10s, 10 s to go`,
    },
  ])("names what stops the heavy request in front, where that is the wait: $title", async ({ limits, reason }) => {
    const { limiter } = rig(all(limits));
    granted(limiter.tryAcquire(host, { cost: 10 }));
    track(limiter.acquire(host, { cost: 10 }));
    const error: unknown = await limiter.acquire(host, { maxWait: 1 }).catch((each: unknown) => each);
    expect(error).toMatchObject({ code: "POLITELY_DEADLINE", waitMs: 10_000, reason });
    expect(limiter.check(host)).toMatchObject({ waitMs: 10_000, reason });
    expect(limiter.explain(host).causes[0]).toMatchObject({ waitMs: 10_000, message: reason });
  });
});

describe("check", () => {
  it.each<{ title: string; limits: Limits; isProbe: boolean }>([
    { title: "a full concurrency", limits: { concurrency: 1 }, isProbe: false },
    { title: "a probe that is out", limits: { cooldown: 1 }, isProbe: true },
  ])("tells whoever waits for an answer when to look again, and marks it as an estimate: $title", async (scene) => {
    const { clock, limiter } = keyRig(scene.limits);
    const first = granted(limiter.tryAcquire());
    if (scene.isProbe) {
      first.release("rate_limited");
      await clock.advance(1);
      granted(limiter.tryAcquire());
    }
    let looks = 0;
    for (let atMs = 0; atMs < 4_000; looks += 1) {
      const { waitMs, isEstimate } = limiter.check();
      expect(isEstimate).toBe(true);
      expect(waitMs).toBeGreaterThanOrEqual(100);
      await clock.advance(waitMs);
      atMs += waitMs;
    }
    expect(looks).toBeLessThanOrEqual(20);
  });

  it("never says less than a platform's timers need: one millisecond more than the exact wait, rounded up", () => {
    const limiter = limit({ minDelay: "10s" });
    granted(limiter.tryAcquire());
    const { waitMs } = limiter.explain();
    expect(Number.isInteger(limiter.check().waitMs)).toBe(true);
    // The wait goes down while the two are asked.
    expect(limiter.check().waitMs).toBeGreaterThanOrEqual(Math.ceil(waitMs));
  });
});

describe("statistics that begin anew", () => {
  it("are zeros at once, while permits are in flight too, and the books balance", async () => {
    const { clock, limiter } = rig(all({ minDelay: 1 }));
    const permit = granted(limiter.tryAcquire(host));
    await clock.advance(5);
    limiter.reset(host, "stats");
    const stats = limiter.stats(host);
    expect(stats).toMatchObject({ totalRequests: 0, granted: 1, inFlight: 1, released: 0 });
    expect(stats?.lastRequestAt).toBeUndefined();
    expect(stats?.toJSON()).toMatchObject({ total_requests: 0, last_request_time: null });
    permit.release();
    expect(limiter.stats(host)).toMatchObject({ totalRequests: 0, inFlight: 0, released: 1 });
    granted(limiter.tryAcquire(host));
    expect(limiter.stats(host)).toMatchObject({ totalRequests: 1 });
    expect(limiter.stats(host)?.lastRequestAt).toBeInstanceOf(Date);
  });

  it("are those of every host where none is named", () => {
    const { limiter } = rig(all({}));
    for (const name of ["a.example", "b.example"]) granted(limiter.tryAcquire(name)).release();
    limiter.reset(undefined, "stats");
    expect(["a.example", "b.example"].map((name) => limiter.stats(name)?.totalRequests)).toEqual([0, 0]);
  });
});

describe("more hosts than stats() lists", () => {
  it("are all in its last row, whatever was reset, given back or came to nothing", async () => {
    const { clock, limiter } = rig(all({ rate: "1/s", concurrency: 2, maxHold: "10s" }), { keepStats: 11_000 });
    const hosts = many(12_000, (index) => `h${index}.example`);
    const ask = (every: number): void =>
      hosts.forEach((name, index) => {
        const permit = limiter.tryAcquire(name);
        if (index % every === 0) permit?.release(index % 2 === 0 ? "success" : "rate_limited");
      });
    const fields = [
      "totalRequests",
      "granted",
      "refused",
      "released",
      "lapsed",
      "inFlight",
      "throttledRequests",
    ] as const;
    const sums = (rows: Iterable<Stats>): number[] => {
      const list = [...rows];
      return fields.map((field) => list.reduce((sum, stats) => sum + stats[field], 0));
    };
    const compare = (): void => {
      const rows = limiter.stats();
      expect([rows.length, rows.at(-1)?.host]).toEqual([10_001, "*"]);
      expect(sums(rows)).toEqual(sums(limiter.eachStats()));
    };
    ask(3);
    compare();
    ask(2);
    limiter.reset("h11999.example", "stats");
    limiter.reset("h1.example", "stats");
    compare();
    await clock.advance(1_000);
    limiter.reset(undefined, "stats");
    expect(sums(limiter.stats())[0]).toBe(0);
    ask(3);
    compare();
    await clock.advance(60_000);
    compare();
    ask(1);
    compare();
  });

  it("are told by eachStats also where their statistics have just begun anew", () => {
    const { limiter } = rig(all({}));
    granted(limiter.tryAcquire(host)).release();
    limiter.reset(undefined, "stats");
    expect([...limiter.eachStats()].map((stats) => [stats.host, stats.totalRequests])).toEqual([[host, 0]]);
    expect(limiter.stats()).toHaveLength(1);
  });

  it("are resumed one and all", () => {
    const { limiter } = rig(all({}));
    for (const name of ["a.example", "b.example"]) limiter.pause(name);
    limiter.resume("b.example");
    limiter.pause("c.example");
    limiter.resume();
    expect(["a.example", "b.example", "c.example"].map((name) => limiter.check(name).proceed)).toEqual([
      true,
      true,
      true,
    ]);
  });
});

describe("the log", () => {
  const off: PolicyInput = { hosts: { "off.example": { enabled: false } } };

  it("says once that a host has no limits, and by which entry of the policy", () => {
    const lines: string[] = [];
    const { limiter } = rig(off, { logger: { info: (line) => lines.push(line) } });
    for (const name of ["off.example", "off.example", "localhost", "on.example"]) limiter.tryAcquire(name);
    expect(lines).toEqual([
      "politely: ready; default: rate 1/s",
      "politely: off.example: disabled (hosts.off.example)",
      "politely: localhost: disabled (localhost)",
    ]);
  });

  it("speaks another language where it is given one, the line of the configuration too", async () => {
    const lines: string[] = [];
    const say = (line: string): void => void lines.push(line);
    const messages: Messages = {
      configured: ({ summary }) => `bereit: ${summary.length > 0}`,
      waiting: ({ key, waitMs }) => `${key}: wartet ${waitMs} ms`,
      disabled: ({ key, why }) => `${key}: ohne Grenzen (${why})`,
      warning: ({ key }) => `Achtung: ${key}`,
      cooldown: ({ key }) => `Pause: ${key}`,
    };
    const { limiter } = rig(off, { logger: { debug: say, info: say, warn: say }, messages });
    granted(limiter.tryAcquire(host)).release("rate_limited");
    track(limiter.acquire(host));
    limiter.tryAcquire("off.example");
    limiter.pause("b.example");
    expect(lines).toEqual([
      "bereit: true",
      `Pause: ${host}`,
      `${host}: wartet 60000 ms`,
      "off.example: ohne Grenzen (hosts.off.example)",
      "politely: b.example: paused",
    ]);
  });

  it("warns once of an intent that the policy does not know, and says what it knows", async () => {
    const lines: string[] = [];
    const policy: PolicyInput = {
      hosts: { [host]: { rate: "1/s", intents: { search: { minDelay: "5s" }, api: {} } } },
    };
    const { clock, limiter } = rig(policy, { logger: { warn: (line) => lines.push(line) } });
    for (let each = 0; each < 3; each++) limiter.tryAcquire({ host, intent: "serach" });
    limiter.tryAcquire({ host, intent: "search" });
    await clock.settle();
    expect(lines).toEqual([
      `politely: ${host}: a request names the intent "serach", for which hosts.${host} has no limits; it knows only search, api`,
    ]);
  });
});

describe("isEnabled", () => {
  it("says whether anything limits a target", () => {
    const { limiter } = rig({
      hosts: { "off.example": { enabled: false } },
      scopes: { "key:*": { minDelay: 1 } },
    });
    expect([host, "off.example", "localhost", "https://127.0.0.1/x"].map((name) => limiter.isEnabled(name))).toEqual([
      true,
      false,
      false,
      false,
    ]);
    expect(limiter.isEnabled({ host: "off.example", scopes: ["key:a"] })).toBe(true);
    expect(keyRig({ enabled: false }).limiter.isEnabled()).toBe(false);
  });
});

describe("another grouping", () => {
  it("is refused by configure, with the hosts concerned, and changes nothing", () => {
    const groupBy = ({ hostname }: URL): string => hostname.split(".").slice(-2).join(".");
    const { limiter } = rig({ default: { rate: "1/h" }, groupBy });
    granted(limiter.tryAcquire("x.one.example"));
    granted(limiter.tryAcquire("y.two.test"));
    for (const other of [{}, { groupBy: (url: URL) => url.hostname }]) {
      expect(() => limiter.configure(other)).toThrow(
        expect.objectContaining({
          code: "POLITELY_POLICY",
          problems: [
            { path: "groupBy", message: expect.stringMatching(/one\.example, two\.test.*make a new limiter/) },
          ],
        }),
      );
    }
    expect(limiter.tryAcquire("z.one.example")).toBeUndefined();
    limiter.configure({ default: { rate: "1/s" }, groupBy });
  });

  it("is a preset that counts known hosts together, too", () => {
    const { limiter } = rig(all({ rate: "1/h" }));
    granted(limiter.tryAcquire("export.arxiv.org"));
    expect(() => limiter.configure({ presets: ["arxiv"] })).toThrow(/export\.arxiv\.org.*make a new limiter/s);
    rig(all({})).limiter.configure({ presets: ["arxiv"] });
  });
});

it("hostile hosts, however many, end in CapacityError, not in memory", () => {
  const { limiter } = rig(all({ rate: "1/h" }), { maxKeys: 1_000, keepStats: 10 });
  let refused = 0;
  for (let index = 0; index < 20_000; index++) {
    try {
      limiter.tryAcquire(`h${index}.example`);
    } catch (error) {
      expect(error).toMatchObject({ code: "POLITELY_CAPACITY", owing: 1_000 });
      refused += 1;
    }
  }
  expect(refused).toBe(19_000);
  expect(limiter.stats().reduce((sum, { asked }) => sum + asked, 0)).toBe(20_000);
});
