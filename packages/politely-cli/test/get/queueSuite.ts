import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FinishedUrl, QueuedUrl, QueueOptions, UrlQueue } from "../../src/get/queue/urlQueue.js";

/** Where queues come from. */
export interface QueueGround {
  open(options: QueueOptions): Promise<UrlQueue>;
  close(): Promise<void>;
}

const leaseMs = 400;

/** What every queue promises, whatever keeps it. */
export function queueSuite(name: string, start: () => Promise<QueueGround>): void {
  describe(`a list of URLs in ${name}`, () => {
    let ground: QueueGround;
    beforeAll(async () => {
      ground = await start();
    });
    afterAll(() => ground.close());

    /** Workers of a list that nobody else has. */
    const fleet = () => {
      const list = randomBytes(6).toString("hex");
      return (worker: string) => ground.open({ name: list, worker, leaseMs });
    };

    it("hands out the URLs of a key in the order of the list, each once", async () => {
      const queue = await fleet()("one");
      await queue.add([...urls("a", 5), ...urls("b", 2)]);
      await queue.begin({ again: false });
      expect(await queue.claim("a", 3)).toEqual(["https://a/0", "https://a/1", "https://a/2"]);
      expect(await queue.claim("a", 3)).toEqual(["https://a/3", "https://a/4"]);
      expect(await queue.claim("a", 3)).toEqual([]);
      expect(await queue.claim("b", 9)).toHaveLength(2);
    });

    it("keeps a URL once that is added twice, and finished when it was", async () => {
      const queue = await fleet()("one");
      await queue.add([...urls("a", 2), ...urls("a", 2)]);
      await queue.finish([{ ...urls("a", 1)[0], outcome: "fetched" }]);
      await queue.add(urls("a", 2));
      await queue.begin({ again: false });
      expect(await queue.counts()).toMatchObject({ total: 2, waiting: 1, fetched: 1 });
      expect(await queue.claim("a", 9)).toEqual(["https://a/1"]);
    });

    it("takes a URL of 8,000 characters", async () => {
      const queue = await fleet()("one");
      const url = `https://a/${"x".repeat(8_000)}`;
      await queue.add([{ url, key: "a" }]);
      await queue.begin({ again: false });
      expect(await queue.claim("a", 1)).toEqual([url]);
      await queue.finish([{ url, key: "a", outcome: "fetched" }]);
      expect(await queue.counts()).toMatchObject({ waiting: 0, fetched: 1 });
    });

    it("names the keys that have something waiting, in order, some at a time", async () => {
      const queue = await fleet()("one");
      await queue.add(["c", "a", "B", "d"].flatMap((key) => urls(key, 1)));
      await queue.begin({ again: false });
      await queue.claim("d", 1);
      expect(await queue.keys("", 2)).toEqual(["B", "a"]);
      expect(await queue.keys("a", 2)).toEqual(["c"]);
    });

    it("counts what waits, what is done and what failed", async () => {
      const queue = await fleet()("one");
      await queue.add([...urls("a", 4), ...urls("b", 1)]);
      await queue.begin({ again: false });
      await queue.claim("a", 3);
      await queue.finish(ended("a", ["fetched", "refused", "failed"]));
      expect(await queue.counts()).toMatchObject({ total: 5, waiting: 2, fetched: 1, refused: 1, failed: 1 });
      expect(await queue.countsByKey(1)).toEqual([
        { key: "a", total: 4, waiting: 1, fetched: 1, refused: 1, failed: 1 },
      ]);
    });

    it("hands out again what failed when the next run begins, and nothing that is finished", async () => {
      const queue = await fleet()("one");
      await queue.add(urls("a", 3));
      await queue.begin({ again: false });
      await queue.claim("a", 3);
      await queue.finish(ended("a", ["fetched", "refused", "failed"]));
      expect(await queue.begin({ again: "if-finished" })).toBe(false);
      expect(await queue.claim("a", 9)).toEqual(["https://a/2"]);
    });

    it("begins a new round over everything once all is finished", async () => {
      const queue = await fleet()("one");
      await queue.add(urls("a", 2));
      await queue.begin({ again: false });
      await queue.claim("a", 2);
      await queue.finish(ended("a", ["fetched", "refused"]));
      expect(await queue.begin({ again: false })).toBe(false);
      expect(await queue.claim("a", 9)).toEqual([]);
      expect(await queue.begin({ again: "if-finished" })).toBe(true);
      expect(await queue.counts()).toMatchObject({ total: 2, waiting: 2, fetched: 0, refused: 0 });
      expect(await queue.claim("a", 9)).toEqual(["https://a/0", "https://a/1"]);
    });

    it("hands out again 3,000 URLs that failed, and all of them in the next round", async () => {
      const queue = await fleet()("one");
      const all = urls("a", 3_000);
      const batches = Array.from({ length: 3 }, (_, index) => all.slice(index * 1_000, (index + 1) * 1_000));
      const finishAll = async (outcome: FinishedUrl["outcome"]): Promise<void> => {
        for (const batch of batches) await queue.finish(batch.map((one) => ({ ...one, outcome })));
      };
      for (const batch of batches) await queue.add(batch);
      await queue.begin({ again: false });
      await finishAll("failed");
      expect(await queue.begin({ again: false })).toBe(false);
      expect(await queue.counts()).toMatchObject({ total: 3_000, waiting: 3_000, failed: 0 });
      await finishAll("fetched");
      expect(await queue.begin({ again: true })).toBe(true);
      expect(await queue.counts()).toMatchObject({ total: 3_000, waiting: 3_000, fetched: 0 });
      expect(await queue.claim("a", 2)).toEqual(["https://a/0", "https://a/1"]);
    });

    it("goes on with a new round that was broken off, and begins the next one once it is over", async () => {
      const queue = await fleet()("one");
      await queue.add(urls("a", 3));
      await queue.begin({ again: false });
      await queue.finish(ended("a", ["fetched", "refused", "fetched"]));
      expect(await queue.begin({ again: true })).toBe(true);
      await queue.finish(ended("a", ["fetched", "failed"]));
      // What failed waits again, what was fetched in this round does not.
      expect(await queue.begin({ again: true })).toBe(false);
      expect(await queue.counts()).toMatchObject({ waiting: 2, fetched: 1 });
      await queue.finish(ended("a", ["fetched", "failed", "fetched"]));
      expect(await queue.begin({ again: true })).toBe(true);
      expect(await queue.counts()).toMatchObject({ waiting: 3, fetched: 0, failed: 0 });
    });

    it("begins a new round over a list that has become longer since the last one ended", async () => {
      const queue = await fleet()("one");
      await queue.add(urls("a", 2));
      await queue.begin({ again: true });
      await queue.finish(ended("a", ["fetched", "fetched"]));
      await queue.add(urls("a", 3));
      expect(await queue.begin({ again: true })).toBe(true);
      expect(await queue.claim("a", 9)).toHaveLength(3);
    });

    it("lets the URLs of a worker that leaves wait again", async () => {
      const queue = await fleet()("one");
      await queue.add(urls("a", 2));
      await queue.begin({ again: false });
      await queue.claim("a", 2);
      expect(await queue.claim("a", 2)).toEqual([]);
      await queue.close();
      expect(await queue.counts()).toMatchObject({ waiting: 2 });
      expect(await queue.claim("a", 2)).toHaveLength(2);
    });

    it("finishes a URL once, however often it is told", async () => {
      const queue = await fleet()("one");
      await queue.add(urls("a", 2));
      await queue.begin({ again: false });
      await queue.finish(ended("a", ["fetched"]));
      await queue.finish(ended("a", ["failed"]));
      await queue.finish([{ url: "https://nobody/knows", key: "a", outcome: "fetched" }]);
      expect(await queue.counts()).toMatchObject({ total: 2, waiting: 1, fetched: 1, failed: 0 });
    });
  });
  describeFleet(name, start);
}

function describeFleet(name: string, start: () => Promise<QueueGround>): void {
  describe(`a list that several workers share in ${name}`, () => {
    let ground: QueueGround;
    beforeAll(async () => {
      ground = await start();
    });
    afterAll(() => ground.close());

    it("hands each URL to one of four workers", async () => {
      const list = randomBytes(6).toString("hex");
      const workers = await Promise.all(
        ["1", "2", "3", "4"].map((worker) => ground.open({ name: list, worker, leaseMs: 60_000 })),
      );
      await workers[0].add([...urls("a", 200), ...urls("b", 200)]);
      await workers[0].begin({ again: false });
      const drain = async (queue: UrlQueue): Promise<string[]> => {
        const got: string[] = [];
        for (const key of ["a", "b"]) {
          for (;;) {
            const some = await queue.claim(key, 7);
            if (some.length === 0) break;
            got.push(...some);
            await queue.finish(some.map((url) => ({ url, key, outcome: "fetched" as const })));
          }
        }
        return got;
      };
      const got = (await Promise.all(workers.map(drain))).flat();
      expect(got).toHaveLength(400);
      expect(new Set(got).size).toBe(400);
      expect(await workers[0].counts()).toMatchObject({ total: 400, waiting: 0, fetched: 400 });
    });

    it("hands out a silent worker's URLs again after its lease, and not those it finished", async () => {
      const list = randomBytes(6).toString("hex");
      const [dead, alive] = await Promise.all(
        ["dead", "alive"].map((worker) => ground.open({ name: list, worker, leaseMs })),
      );
      await dead.add(urls("a", 4));
      await dead.begin({ again: false });
      await dead.claim("a", 3);
      await dead.finish(ended("a", ["fetched"]));
      expect(await alive.claim("a", 9)).toEqual(["https://a/3"]);
      expect(await alive.renew()).toBe(0);
      await delay(leaseMs + 100);
      expect(await alive.renew()).toBe(2);
      expect(await alive.claim("a", 9)).toEqual(["https://a/1", "https://a/2"]);
    });

    it("leaves a worker its URLs as long as it renews", async () => {
      const list = randomBytes(6).toString("hex");
      const [slow, other] = await Promise.all(
        ["slow", "other"].map((worker) => ground.open({ name: list, worker, leaseMs })),
      );
      await slow.add(urls("a", 1));
      await slow.begin({ again: false });
      await slow.claim("a", 1);
      for (let turn = 0; turn < 4; turn++) {
        await delay(leaseMs / 3);
        await slow.renew();
        expect(await other.renew()).toBe(0);
      }
    });

    it.each([
      ["fresh", 0],
      ["finished", 60],
      ["half finished", 30],
    ])("lets a second worker join the new round that the first began over a %s list", async (_, finished) => {
      const list = randomBytes(6).toString("hex");
      const [first, second] = await Promise.all(
        ["first", "second"].map((worker) => ground.open({ name: list, worker, leaseMs: 60_000 })),
      );
      const all = urls("a", 60);
      await first.add(all);
      await first.begin({ again: false });
      await first.finish(all.slice(0, finished).map((one) => ({ ...one, outcome: "fetched" as const })));
      const asked: string[] = [];
      const take = async (queue: UrlQueue, count: number): Promise<void> => {
        const some = await queue.claim("a", count);
        asked.push(...some);
        await queue.finish(some.map((url) => ({ url, key: "a", outcome: "fetched" as const })));
      };
      await first.add(all);
      expect(await first.begin({ again: true })).toBe(finished > 0);
      await take(first, 44);
      await first.claim("a", 1);
      await second.add(all);
      expect(await second.begin({ again: true })).toBe(false);
      await take(second, 99);
      expect(asked).toHaveLength(59);
      expect(new Set(asked).size).toBe(59);
    });

    it("begins one round when two workers ask for it at once", async () => {
      const list = randomBytes(6).toString("hex");
      const workers = await Promise.all(
        ["1", "2", "3"].map((worker) => ground.open({ name: list, worker, leaseMs: 60_000 })),
      );
      const all = urls("a", 600);
      await workers[0].add(all);
      await workers[0].finish(all.map((one) => ({ ...one, outcome: "fetched" as const })));
      const asked = await Promise.all(
        workers.map(async (queue) => {
          await queue.begin({ again: true });
          const some = await queue.claim("a", 100);
          await queue.finish(some.map((url) => ({ url, key: "a", outcome: "fetched" as const })));
          return some;
        }),
      );
      expect(new Set(asked.flat()).size).toBe(300);
      expect(await workers[0].counts()).toMatchObject({ total: 600, waiting: 300, fetched: 300 });
    });

    it("leaves a worker its URLs whose lease is a hundred times as long as another's", async () => {
      const list = randomBytes(6).toString("hex");
      const patient = await ground.open({ name: list, worker: "patient", leaseMs: 40_000 });
      const hasty = await ground.open({ name: list, worker: "hasty", leaseMs });
      await patient.add(urls("a", 4));
      await patient.begin({ again: false });
      await patient.claim("a", 2);
      expect(await hasty.renew()).toBe(0);
      expect(await hasty.claim("a", 9)).toHaveLength(2);
      expect(await patient.renew()).toBe(0);
    });

    it("keeps lists of different names apart", async () => {
      const [one, two] = await Promise.all(
        [1, 2].map(() => ground.open({ name: randomBytes(6).toString("hex"), worker: "w", leaseMs })),
      );
      await one.add(urls("a", 2));
      await two.begin({ again: false });
      expect(await two.counts()).toMatchObject({ total: 0 });
      expect(await two.keys("", 9)).toEqual([]);
    });
  });
}

function urls(key: string, count: number): QueuedUrl[] {
  return Array.from({ length: count }, (_, index) => ({ url: `https://${key}/${index}`, key }));
}

function ended(key: string, outcomes: readonly FinishedUrl["outcome"][]): FinishedUrl[] {
  return outcomes.map((outcome, index) => ({ url: `https://${key}/${index}`, key, outcome }));
}
