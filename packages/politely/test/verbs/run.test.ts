import { describe, expect, it } from "vitest";
import { ClosedError } from "../../src/index.js";
import { expectBooks, failure, keyRig, many, rig, track } from "./support.js";

describe("run", () => {
  it("acquires, does the task with its permit, and releases", async () => {
    const { limiter } = rig({ default: { concurrency: 1 } });
    const seen = await limiter.run("https://X.org/a", (permit) => `${permit.key} at ${permit.startedAtMs}`);
    expect(seen).toBe("x.org at 0");
    expect(limiter.stats("x.org")).toMatchObject({ inFlight: 0, released: 1 });
  });

  it("waits for an asynchronous task before it releases", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1 });
    let finish = (_value: string): void => undefined;
    const done = track(limiter.run(() => new Promise<string>((resolve) => (finish = resolve))));
    await clock.advance(10_000);
    expect(limiter.stats().inFlight).toBe(1);
    finish("ready");
    await clock.settle();
    expect(done.value).toBe("ready");
    expect(limiter.stats().inFlight).toBe(0);
  });

  it.each([undefined, null, 0, "text", { statusText: "odd" }, { status: "429" }])(
    "counts the return of %j as a success",
    async (value) => {
      const { clock, limiter } = keyRig({ cooldown: ["10s", "20s"] });
      limiter.record("rate_limited");
      await clock.advance(10_000);
      expect(await limiter.run(() => value)).toBe(value);
      limiter.record("rate_limited");
      expect(limiter.stats().cooldownMs).toBe(10_000);
    },
  );

  it("reads the status of what is returned as the answer", async () => {
    const { limiter } = keyRig({ minDelay: 10 });
    const response = new Response("slow down", { status: 429, headers: { "Retry-After": "30" } });
    expect(await limiter.run(() => Promise.resolve(response))).toBe(response);
    expect(limiter.stats()).toMatchObject({ cooldownMs: 30_000, throttledRequests: 1 });
  });

  it("passes the error of a task on and learns nothing from it", async () => {
    const { limiter } = keyRig({ concurrency: 1 });
    const error = new Error("broken");
    expect(await failure(limiter.run(() => Promise.reject(error)))).toBe(error);
    const thrown = failure(
      limiter.run(() => {
        throw error;
      }),
    );
    expect(await thrown).toBe(error);
    expect(limiter.stats()).toMatchObject({ inFlight: 0, released: 2, cooldownMs: 0 });
  });

  it.each([
    [429, 60_000],
    [503, 5_000],
    [404, 0],
  ])("reads the status %i of an error as the answer: a hold of %i ms", async (status, holdMs) => {
    const { limiter } = keyRig({ concurrency: 1 });
    await failure(limiter.run(() => Promise.reject(Object.assign(new Error("http"), { status }))));
    expect(limiter.stats()).toMatchObject({ cooldownMs: holdMs, inFlight: 0 });
  });

  it.each(["just words", 42, undefined, null])("passes on the thrown value %j as it is", async (thrown) => {
    const { limiter } = keyRig({ concurrency: 1 });
    // oxlint-disable-next-line prefer-promise-reject-errors
    expect(await failure(limiter.run(() => Promise.reject(thrown)))).toBe(thrown);
    expect(limiter.stats().inFlight).toBe(0);
  });

  it("does not call the task when the wait is given up", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    let calls = 0;
    const abort = new AbortController();
    const waiting = failure(limiter.run(() => (calls += 1), { signal: abort.signal }));
    abort.abort();
    await waiting;
    await clock.advance(5_000);
    expect(calls).toBe(0);
  });

  it("leaves a permit that the task released itself as it is", async () => {
    const { limiter } = keyRig({ concurrency: 1 });
    await limiter.run((permit) => permit.release("rate_limited"));
    expect(limiter.stats()).toMatchObject({ released: 1, inFlight: 0, cooldownMs: 60_000 });
  });

  it("passes the options of acquire on", async () => {
    const { limiter } = keyRig({ window: "5/min" });
    await limiter.run(() => undefined, { cost: 4 });
    expect(limiter.stats().window?.calls).toBe(4);
    const error = await failure(limiter.run(() => undefined, { cost: 4, maxWait: 0 }));
    expect(error).toMatchObject({ code: "POLITELY_DEADLINE" });
  });

  it("rejects after close without calling the task", async () => {
    const { limiter } = keyRig({ minDelay: 1 });
    await limiter.close();
    let calls = 0;
    expect(await failure(limiter.run(() => (calls += 1)))).toBeInstanceOf(ClosedError);
    expect(calls).toBe(0);
  });
});

describe("wrap", () => {
  it("keeps the name of the function and how many arguments it takes", () => {
    const { limiter } = rig();
    function addUp(a: number, b: number): number {
      return a + b;
    }
    const { name, length } = limiter.wrap("x.org", addUp);
    expect([name, length]).toEqual(["addUp", 2]);
  });

  it("makes the same function, paced", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    const add = limiter.wrap("x.org", (a: number, b: number) => ({ sum: a + b, atMs: clock.now() }));
    const sums = [add(1, 2), add(3, 4), add(5, 6)];
    await clock.advance(2_000);
    expect(await Promise.all(sums)).toEqual([
      { sum: 3, atMs: 0 },
      { sum: 7, atMs: 1_000 },
      { sum: 11, atMs: 2_000 },
    ]);
  });

  it("finds the target from the arguments of each call", async () => {
    const { limiter } = rig({ default: { minDelay: "1s" } });
    const get = limiter.wrap(
      (url: string, _retries: number) => url,
      (url: string, retries: number) => `${url} ${retries}`,
    );
    expect(await Promise.all([get("https://a.org/1", 1), get("https://b.org/2", 2)])).toEqual([
      "https://a.org/1 1",
      "https://b.org/2 2",
    ]);
    expect(
      limiter
        .stats()
        .map((row) => row.host)
        .sort(),
    ).toEqual(["a.org", "b.org"]);
  });

  it("keeps this", async () => {
    const { limiter } = rig();
    const client = {
      base: "https://a.org",
      get: limiter.wrap("a.org", function get(this: { base: string }, path: string) {
        return this.base + path;
      }),
    };
    expect(await client.get("/x")).toBe("https://a.org/x");
  });

  it("passes errors on, of the function and of its target", async () => {
    const { limiter } = rig();
    const broken = limiter.wrap("a.org", () => Promise.reject(new Error("no answer")));
    expect(await failure(broken())).toMatchObject({ message: "no answer" });
    const lost = limiter.wrap(
      () => "",
      () => "never",
    );
    expect(await failure(lost())).toBeInstanceOf(TypeError);
    const confused = limiter.wrap(
      (): string => {
        throw new Error("no idea where");
      },
      () => "never",
    );
    expect(await failure(confused())).toMatchObject({ message: "no idea where" });
    expectBooks(limiter.stats("a.org"));
  });

  it("of one key needs no target", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100 });
    const now = limiter.wrap(() => clock.now());
    const all = many(3, () => now());
    await clock.advance(200);
    expect(await Promise.all(all)).toEqual([0, 100, 200]);
  });
});
