import { describe, expect, it } from "vitest";
import type { LimiterEvent, Logger } from "../../src/index.js";
import { limit, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { expectBooks, failure, granted, keyRig, many, rig, startsOf, track } from "../verbs/support.js";

const explode = (): never => {
  throw new Error("boom");
};

describe("code of the caller that throws", () => {
  it("a listener that throws breaks nothing: others hear, requests go on, books balance", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 100, concurrency: 2 } });
    limiter.subscribe(explode);
    const heard: string[] = [];
    limiter.subscribe((event) => heard.push(event.type));
    limiter.subscribe(explode);
    const abort = new AbortController();
    const permits = many(3, () => limiter.acquire("a.org"));
    const cancelled = failure(limiter.acquire("a.org", { signal: abort.signal }));
    abort.abort();
    await cancelled;
    await clock.advance(100);
    (await permits[0]).release("rate_limited");
    (await permits[1]).release("success");
    await clock.advance(60_000);
    (await permits[2]).release("success");
    limiter.pause("a.org", 1);
    limiter.resume("a.org");
    limiter.configure({ default: { minDelay: 50 } });
    expect(limiter.stats("a.org")).toMatchObject({ granted: 3, released: 3, cancelled: 1, inFlight: 0, waiting: 0 });
    expectBooks(limiter.stats("a.org"));
    for (const type of ["wait", "grant", "cancel", "release", "cooldown", "probe", "pause", "resume", "configure"]) {
      expect(heard).toContain(type);
    }
    await limiter.close();
  });

  it("a listener that returns a rejected promise is ignored too", async () => {
    const { clock, limiter } = rig();
    const listener: (event: LimiterEvent) => unknown = () => Promise.reject(new Error("boom"));
    limiter.subscribe(listener);
    expect((await limiter.acquire("a.org")).waitedMs).toBe(0);
    // A rejection nobody handles would end a real process here.
    await clock.settle();
  });

  it("a logger that throws breaks nothing", async () => {
    const logger: Logger = { debug: explode, info: explode, warn: explode };
    const clock = new VirtualClock();
    const limiter = politely({ default: { rate: "1/s", burst: 100 } }, { clock, logger });
    await limiter.acquire("a.org", { cost: 100 });
    const waiting = limiter.acquire("a.org");
    await limiter.acquire("localhost");
    await clock.advance(1_000);
    expect((await waiting).startedAtMs).toBe(1_000);
    limiter.configure({ default: { rate: "1/s", burst: 200 } });
  });

  it("a logger with only some of its methods is enough", async () => {
    const lines: string[] = [];
    const limiter = limit({ minDelay: 1 }, { clock: new VirtualClock(), logger: { info: (line) => lines.push(line) } });
    void many(3, () => track(limiter.acquire()));
    expect(lines.length).toBeGreaterThan(0);
    await limiter.close();
  });

  it("a logger keeps its own this", async () => {
    class Book {
      readonly lines: string[] = [];
      info(line: string): void {
        this.lines.push(line);
      }
    }
    const logger = new Book();
    limit({ minDelay: 1 }, { clock: new VirtualClock(), logger });
    expect(logger.lines.length).toBeGreaterThan(0);
  });

  it("tasks that throw in every way give their place back and disturb no other", async () => {
    const { clock, limiter } = keyRig({ concurrency: 2 });
    const hostile = new Proxy({}, { get: explode });
    const getter = {
      get status(): number {
        throw new Error("getter");
      },
    };
    const tasks: (() => unknown)[] = [
      explode,
      () => Promise.reject(new Error("later")),
      () => hostile,
      () => getter,
      () => "fine",
    ];
    const results = many(50, (index) =>
      limiter.run(tasks[index % tasks.length]).then(
        () => "done",
        () => "failed",
      ),
    );
    await clock.advance(1_000);
    const ends = await Promise.all(results);
    expect(ends.filter((end, index) => index % 5 === 4 && end === "done")).toHaveLength(10);
    expect(ends.filter((end, index) => index % 5 < 3 && end === "failed")).toHaveLength(30);
    expect(limiter.stats()).toMatchObject({ inFlight: 0, waiting: 0, granted: 50, released: 50 });
    expectBooks(limiter.stats());
  });

  it("an error whose status cannot be read is passed on as it is", async () => {
    const { limiter } = keyRig({ concurrency: 1 });
    const error = {
      get status(): number {
        throw new Error("getter");
      },
    };
    // oxlint-disable-next-line prefer-promise-reject-errors
    expect(await failure(limiter.run(() => Promise.reject(error)))).toBe(error);
    expect(limiter.stats().inFlight).toBe(0);
  });

  it("headers that throw when read count as none, and the place is given back", () => {
    const { limiter } = keyRig({ concurrency: 1 });
    granted(limiter.tryAcquire()).release({ status: 429, headers: { get: explode } });
    expect(limiter.stats()).toMatchObject({ inFlight: 0, cooldownMs: 60_000 });
  });

  it("random numbers out of range never make a hold shorter than its step", () => {
    const backoff = { kind: "linear", base: "5s", max: "60s", jitter: 0.5 } as const;
    for (const value of [-5, Number.NaN, Number.NEGATIVE_INFINITY]) {
      const { limiter } = keyRig({ minDelay: 1, backoff }, { random: () => value });
      limiter.record("server_error");
      expect(limiter.stats().cooldownMs).toBeGreaterThanOrEqual(5_000);
    }
  });

  it("a caller that throws when its wait ends disturbs no other waiter", async () => {
    const { clock, limiter } = keyRig({ minDelay: 10 });
    const first = failure(limiter.acquire().then(explode));
    const rest = many(3, () => limiter.acquire());
    await clock.advance(30);
    await first;
    expect(await startsOf(rest)).toEqual([10, 20, 30]);
  });

  it("an abort listener of the caller that throws disturbs nothing", async () => {
    const { clock, limiter } = keyRig({ minDelay: 10 });
    await limiter.acquire();
    const abort = new AbortController();
    const gone = many(5, () => failure(limiter.acquire({ signal: abort.signal })));
    const stays = limiter.acquire();
    abort.abort();
    await Promise.all(gone);
    await clock.advance(10);
    expect((await stays).startedAtMs).toBe(10);
  });
});
