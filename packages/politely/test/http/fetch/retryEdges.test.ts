import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { exchangeOf } from "../../../src/http/exchange.js";
import { onAbort } from "../../../src/http/onAbort.js";
import { type Limiter, type PolicyInput, politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
import type { FetchOptions } from "../../../src/types.js";
import { networkFailure, type Scripted, scriptedSite } from "./scripted.js";

const URL_A = "https://a.example/page";

type Retry = NonNullable<NonNullable<PolicyInput["http"]>["retry"]>;

function policy(retry: Retry, more: PolicyInput = {}): PolicyInput {
  return { default: { rate: "100/s", burst: 100, backoff: "none" }, ...more, http: { retry } };
}

function busy(retryAfterSec: number): Scripted {
  return { status: 429, headers: { "retry-after": String(retryAfterSec) }, body: "later" };
}

/** What a request fails with. */
async function failureOf(page: Promise<Response>): Promise<unknown> {
  return page.then(
    ({ status }) => `It did not fail: ${status}.`,
    (error: unknown) => error,
  );
}

/** Hosts on which the limiter holds nobody. */
const unpaced: [string, string, PolicyInput][] = [
  ["localhost", "http://localhost:8080/page", {}],
  ["a host that is off", URL_A, { hosts: { "a.example": { enabled: false } } }],
];

describe.each(unpaced)("retries on %s", (_name, url, more) => {
  it("wait for as long as the answer asks", async () => {
    const site = scriptedSite(policy({ attempts: 3, delay: 100 }, more), (n) => busy(n === 0 ? 30 : 7));
    const page = site.polite.fetch(url);
    await site.clock.runToEnd();
    expect((await page).status).toBe(429);
    expect(site.seen.map(({ atMs }) => atMs)).toEqual([0, 30_000, 37_000]);
  });

  it("wait their own delay where that is longer, and where nothing is asked", async () => {
    const site = scriptedSite(policy({ attempts: 3, delay: "10s" }, more), (n) => (n === 0 ? busy(3) : 429));
    const page = site.polite.fetch(url);
    await site.clock.runToEnd();
    await page;
    expect(site.seen.map(({ atMs }) => atMs)).toEqual([0, 10_000, 30_000]);
  });

  it("are not made when the answer asks for more than maxWait: it is returned at once", async () => {
    const site = scriptedSite(policy({ attempts: 3, maxWait: "20s" }, more), () => busy(30));
    const response = await site.polite.fetch(url);
    expect(await response.text()).toBe("later");
    expect(site.seen).toHaveLength(1);
    expect(site.clock.now()).toBe(0);
  });

  it("are not made when the answer asks for more than the caller's own maxWait", async () => {
    const site = scriptedSite(policy({ attempts: 3, delay: 10, maxWait: "1h" }, more), () => busy(30));
    const { tries } = await repeat(site.polite, url, { maxWait: "20s" });
    expect(tries).toBe(1);
    expect(site.clock.now()).toBe(0);
  });

  it("end when the caller gives up, and leave nothing behind", async () => {
    const site = scriptedSite(policy({ attempts: 3 }, more), () => busy(30));
    const controller = new AbortController();
    const failure = failureOf(site.polite.fetch(url, { signal: controller.signal }));
    await site.clock.advance(1_000);
    controller.abort("enough");
    expect(await failure).toBe("enough");
    await site.clock.runToEnd();
    expect(site.clock.now()).toBe(1_000);
  });
});

/** Goes through the retrier as a client does, with answers that ask for half a minute. */
async function repeat(polite: Limiter, url: string, options: FetchOptions): Promise<{ tries: number }> {
  const { retrier } = exchangeOf(polite, "test");
  const rules = retrier.rulesFor("GET");
  if (rules === undefined) throw new Error("The policy has no retries.");
  let tries = 0;
  await retrier.run(
    {
      url,
      method: "GET",
      signal: undefined,
      options,
      attempt: async () => {
        tries += 1;
        return new Headers({ "retry-after": "30" });
      },
      status: () => 429,
      headers: (headers) => headers,
      letGo: () => undefined,
      discard: () => undefined,
    },
    rules,
  );
  return { tries };
}

describe("the wait of a repetition", () => {
  it("is bounded by the caller's maxWait where that is less than the policy's", async () => {
    const site = scriptedSite(policy({ attempts: 2, delay: 1, maxWait: "60s" }), () => busy(2));
    const page = site.polite.fetch(URL_A, { politely: { maxWait: "100ms" } });
    await site.clock.runToEnd();
    expect(await (await page).text()).toBe("later");
    expect(site.seen).toHaveLength(1);
    expect(site.clock.now()).toBeLessThanOrEqual(100);
  });

  it("is bounded by the policy's maxWait where that is less than the caller's", async () => {
    const site = scriptedSite(policy({ attempts: 2, delay: 1, maxWait: "100ms" }), () => busy(2));
    const page = site.polite.fetch(URL_A, { politely: { maxWait: "60s" } });
    await site.clock.runToEnd();
    expect((await page).status).toBe(429);
    expect(site.seen).toHaveLength(1);
  });

  it("on a paced host is one in its lane, seen and explained", async () => {
    const site = scriptedSite(policy({ attempts: 2, delay: 1 }), (n) => (n === 0 ? busy(30) : 200));
    const page = site.polite.fetch(URL_A);
    await site.clock.advance(1_000);
    expect(site.polite.stats(URL_A)).toMatchObject({ waiting: 1 });
    expect(site.polite.explain(URL_A).causes[0]).toMatchObject({ limit: "cooldown" });
    await site.clock.runToEnd();
    expect((await page).ok).toBe(true);
    expect(site.seen[1].atMs).toBe(30_000);
  });

  it("that is refused after a network failure leaves that failure", async () => {
    const limits = { default: { rate: "100/s", burst: 100, backoff: "linear" } } as const;
    const site = scriptedSite(policy({ attempts: 2, delay: 1, maxWait: "10ms" }, limits), () =>
      networkFailure("ECONNRESET"),
    );
    const failure = failureOf(site.polite.fetch(URL_A));
    await site.clock.runToEnd();
    expect(await failure).toMatchObject({ message: "fetch failed" });
    expect(site.seen).toHaveLength(1);
  });
});

describe("a closed limiter", () => {
  it.each([false, true])("gives those between two tries their last answer at once (drain: %s)", async (drain) => {
    const site = scriptedSite(policy({ attempts: 3, delay: "3s" }), () => ({ status: 500, body: "broken" }));
    const page = site.polite.fetch(URL_A);
    await site.clock.advance(100);
    await site.polite.close({ drain });
    expect(await (await page).text()).toBe("broken");
    expect(site.clock.now()).toBe(100);
    expect(site.clock.pendingTimers).toBe(0);
  });

  it("gives those without an answer the failure they have", async () => {
    const site = scriptedSite(policy({ attempts: 3, delay: "3s" }), () => networkFailure("ECONNRESET"));
    const failure = failureOf(site.polite.fetch(URL_A));
    await site.clock.advance(100);
    await site.polite.close();
    expect(await failure).toMatchObject({ message: "fetch failed" });
    expect(site.clock.now()).toBe(100);
  });

  it("lets nobody wait for another try whose answer comes later", async () => {
    const site = scriptedSite(policy({ attempts: 3, delay: "3s" }), () => ({ status: 500, latencyMs: 500 }));
    const page = site.polite.fetch(URL_A);
    await site.clock.advance(100);
    const closed = site.polite.close();
    await site.clock.advance(400);
    expect((await page).status).toBe(500);
    await closed;
    expect(site.clock.now()).toBe(500);
  });
});

describe("a signal that many requests share", () => {
  it("has one listener for all that wait between two tries", async () => {
    const { signal } = new AbortController();
    const polite = politely(policy({ attempts: 2, delay: 20, budget: { share: 1, perMinute: 100 } }), {
      fetch: async () => new Response("no", { status: 500 }),
    });
    const pages = Array.from({ length: 16 }, () => polite.fetch(URL_A, { signal }));
    await new Promise(setImmediate);
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    await Promise.all(pages);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("tells everybody once, and nobody who has stopped listening, also on the way", () => {
    const controller = new AbortController();
    const told: string[] = [];
    const stopFirst = onAbort(controller.signal, () => told.push("first"));
    onAbort(controller.signal, () => {
      told.push("second");
      stopThird();
    });
    const stopThird = onAbort(controller.signal, () => told.push("third"));
    onAbort(controller.signal, () => told.push("fourth"));
    stopFirst();
    stopFirst();
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
    controller.abort();
    expect(told).toEqual(["second", "fourth"]);
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  });
});

describe("the last answer, when a repetition was planned and not made", () => {
  /** A limiter whose site answers 503 with a body that never ends; aborting the request breaks it. */
  function stalling(): { clock: VirtualClock; polite: Limiter } {
    const clock = new VirtualClock();
    const polite = politely(policy({ attempts: 3, maxWait: "2s" }, { default: { backoff: "none" } }), {
      clock,
      random: () => 0,
      fetch: async (_input, init) => {
        const body = new ReadableStream<Uint8Array>({
          start(controller) {
            controller.enqueue(new Uint8Array([65]));
            init?.signal?.addEventListener("abort", () => controller.error(init.signal?.reason));
          },
        });
        return new Response(body, { status: 503 });
      },
    });
    return { clock, polite };
  }

  it("still ends with its timeout", async () => {
    const { clock, polite } = stalling();
    const page = polite.fetch(URL_A, { politely: { timeout: "30s" } });
    await clock.advance(1);
    void polite.close();
    const failed = (await page).text().catch((error: unknown) => error);
    await clock.advance(30_000);
    expect(await failed).toMatchObject({ name: "TimeoutError" });
  });

  it("still ends when its caller gives up", async () => {
    const { clock, polite } = stalling();
    const controller = new AbortController();
    const page = polite.fetch(URL_A, { signal: controller.signal, politely: { timeout: "30s" } });
    await clock.advance(1);
    void polite.close();
    const text = (await page).text();
    controller.abort(new Error("enough"));
    await expect(text).rejects.toThrow("enough");
  });

  it("keeps no place while its body comes", async () => {
    const { clock, polite } = stalling();
    void polite.fetch(URL_A, { politely: { timeout: "30s" } }).catch(() => undefined);
    await clock.advance(1);
    expect(polite.stats(URL_A)?.inFlight).toBe(0);
    void polite.close();
  });
});
