import { describe, expect, it } from "vitest";
import type { PolicyInput } from "../../../src/index.js";
import { networkFailure, scriptedSite } from "./scripted.js";

const URL_A = "https://a.example/page";

function policy(retry: NonNullable<NonNullable<PolicyInput["http"]>["retry"]>, limits = {}): PolicyInput {
  return { default: { rate: "100/s", burst: 100, backoff: "none", ...limits }, http: { retry } };
}

describe("retries", () => {
  it("are not made unless asked for", async () => {
    const { polite, seen } = scriptedSite({}, () => 503);
    expect((await polite.fetch(URL_A)).status).toBe(503);
    expect(seen).toHaveLength(1);
  });

  it("climb the ladder 10, 20, 40 s after 429s and return the page in the end", async () => {
    const site = scriptedSite(policy({ attempts: 4 }, { cooldown: ["10s", "20s", "40s"] }), (n) => (n < 3 ? 429 : 200));
    const page = site.polite.fetch(URL_A);
    await site.clock.runToEnd();
    expect((await page).status).toBe(200);
    expect(site.seen.map(({ atMs }) => atMs)).toEqual([0, 10_000, 30_000, 70_000]);
  });

  it("are told of: which sending comes next, after how long, and why", async () => {
    const answers = [503, { status: 429, headers: { "retry-after": "30" } }, networkFailure("ECONNRESET"), 200];
    const site = scriptedSite(policy({ attempts: 5 }), (n) => answers[n]);
    const page = site.polite.fetch(URL_A);
    await site.clock.runToEnd();
    expect((await page).status).toBe(200);
    const told = site.events.filter((event) => event.type === "retry");
    expect(
      told.map(({ key, attempt, attempts, waitMs, because }) => [key, attempt, attempts, waitMs, because]),
    ).toEqual([
      ["a.example", 2, 5, 1_000, "503"],
      ["a.example", 3, 5, 2_000, "429, Retry-After 30 s"],
      ["a.example", 4, 5, 4_000, "ECONNRESET"],
    ]);
  });

  it("keep idle waiting until they are over, for their own host", async () => {
    const site = scriptedSite(policy({ attempts: 3, delay: "5s" }), (n) => (n < 2 ? 503 : 200));
    const { polite, clock } = site;
    const page = polite.fetch(URL_A);
    const restedAtMs: [string, number][] = [];
    const note = (who: string): (() => void) => {
      return () => void restedAtMs.push([who, clock.now()]);
    };
    await clock.advance(1);
    void polite.idle().then(note("all"));
    void polite.idle(URL_A).then(note("a.example"));
    void polite.idle("b.example").then(note("b.example"));
    await clock.runToEnd();
    expect((await page).status).toBe(200);
    expect(restedAtMs).toEqual([
      ["b.example", 1],
      ["all", 15_000],
      ["a.example", 15_000],
    ]);
  });

  it.each([
    ["an answer without a body", { status: 503, body: null }],
    ["a connection that broke", networkFailure("ECONNRESET")],
  ])("keep idle waiting after %s", async (_, failure) => {
    const site = scriptedSite(policy({ attempts: 2 }), (n) => (n === 0 ? failure : 200));
    const { polite, clock } = site;
    const page = polite.fetch(URL_A);
    let restedAtMs = -1;
    void polite.idle().then(() => {
      restedAtMs = clock.now();
    });
    await clock.runToEnd();
    expect((await page).status).toBe(200);
    expect(restedAtMs).toBe(1_000);
  });

  it("are not made, told of or counted for a request that its caller has given up", async () => {
    const site = scriptedSite(policy({ attempts: 2, budget: { share: 0, perMinute: 3 } }), (n) =>
      n < 12 ? { status: 200, latencyMs: 5_000 } : n === 12 ? 503 : 200,
    );
    const { polite, clock, events } = site;
    const given = Array.from({ length: 12 }, () => {
      const controller = new AbortController();
      const timer = clock.setTimer(clock.now() + 30, () => {
        controller.abort(new DOMException("No answer within 30 ms.", "TimeoutError"));
      });
      return polite.fetch(URL_A, { signal: controller.signal }).finally(() => clock.clearTimer(timer));
    });
    const settled = Promise.allSettled(given);
    await clock.advance(100);
    expect((await settled).every(({ status }) => status === "rejected")).toBe(true);
    expect(events.filter(({ type }) => type === "retry")).toEqual([]);
    const page = polite.fetch(URL_A);
    await clock.runToEnd();
    expect((await page).status).toBe(200);
  });

  it("let idle go when the one that waits to be sent again is given up", async () => {
    const site = scriptedSite(policy({ attempts: 3, delay: "5s" }), () => 503);
    const { polite, clock } = site;
    const controller = new AbortController();
    const page = polite.fetch(URL_A, { signal: controller.signal });
    await clock.advance(1);
    const rested = polite.idle();
    controller.abort(new Error("enough"));
    await expect(page).rejects.toThrow("enough");
    await rested;
    expect(clock.now()).toBe(1);
  });

  it("return the last answer when the attempts are used up", async () => {
    const site = scriptedSite(policy({ attempts: 3 }, { cooldown: "1s" }), (n) => ({ status: 429, body: `no ${n}` }));
    const page = site.polite.fetch(URL_A);
    await site.clock.runToEnd();
    const response = await page;
    expect(response.status).toBe(429);
    expect(await response.text()).toBe("no 2");
    expect(site.seen).toHaveLength(3);
    expect(site.polite.stats(URL_A)?.inFlight).toBe(0);
  });

  it("return the last answer, body and all, when the wait would exceed maxWait", async () => {
    const retry = { attempts: 5, maxWait: "30s" as const };
    const site = scriptedSite(policy(retry), () => ({
      status: 429,
      headers: { "retry-after": "3600" },
      body: "later",
    }));
    const page = site.polite.fetch(URL_A);
    await site.clock.runToEnd();
    expect(await (await page).text()).toBe("later");
    expect(site.seen).toHaveLength(1);
    expect(site.clock.now()).toBeLessThan(30_000);
  });

  it("wait at least the delay, doubling, where the limiter holds nothing", async () => {
    const site = scriptedSite(policy({ attempts: 4, delay: "2s" }), (n) => (n < 3 ? 500 : 200));
    const page = site.polite.fetch(URL_A);
    await site.clock.runToEnd();
    expect((await page).ok).toBe(true);
    expect(site.seen.map(({ atMs }) => atMs)).toEqual([0, 2_000, 6_000, 14_000]);
  });

  it("are made after a network failure, which is thrown when it stays", async () => {
    const site = scriptedSite(policy({ attempts: 2 }), () => networkFailure("ECONNRESET"));
    const page = site.polite.fetch(URL_A);
    const failure = page.catch((error: unknown) => error);
    await site.clock.runToEnd();
    expect(await failure).toMatchObject({ name: "TypeError", message: "fetch failed" });
    expect(site.seen).toHaveLength(2);
  });

  it.each(["POST", "PUT", "DELETE", "PATCH"])("do not repeat %s unless told", async (method) => {
    const site = scriptedSite(policy({ attempts: 3 }), () => 503);
    const page = site.polite.fetch(URL_A, { method });
    await site.clock.runToEnd();
    expect((await page).status).toBe(503);
    expect(site.seen).toHaveLength(1);
  });

  it("repeat a POST with its body when told", async () => {
    const site = scriptedSite(policy({ attempts: 3, methods: ["POST"] }), (n) => (n === 0 ? 503 : 200));
    const page = site.polite.fetch(URL_A, { method: "post", body: "a=1" });
    await site.clock.runToEnd();
    expect((await page).status).toBe(200);
    expect(site.seen.map(({ method, body }) => [method, body])).toEqual([
      ["POST", "a=1"],
      ["POST", "a=1"],
    ]);
  });

  it("repeat a Request object with its body when told", async () => {
    const site = scriptedSite(policy({ attempts: 3, methods: ["POST"] }), (n) => (n < 2 ? 503 : 200));
    const page = site.polite.fetch(new Request(URL_A, { method: "POST", body: "a=1" }));
    await site.clock.runToEnd();
    expect((await page).status).toBe(200);
    expect(site.seen.map(({ body }) => body)).toEqual(["a=1", "a=1", "a=1"]);
  });

  it("do not repeat a stream, which is gone once it is sent", async () => {
    const site = scriptedSite(policy({ attempts: 3, methods: ["POST"] }), () => 503);
    const body = new Blob(["a=1"]).stream();
    const init = { method: "POST", body, duplex: "half" } as RequestInit;
    const page = site.polite.fetch(URL_A, init);
    await site.clock.runToEnd();
    expect((await page).status).toBe(503);
    expect(site.seen).toHaveLength(1);
  });

  it.each([400, 401, 403, 404, 410, 501, 505])("do not repeat %i", async (status) => {
    const site = scriptedSite(policy({ attempts: 3 }), () => status);
    const page = site.polite.fetch(URL_A);
    await site.clock.runToEnd();
    expect((await page).status).toBe(status);
    expect(site.seen).toHaveLength(1);
  });

  it("stay within a budget of 20 % of the host's requests plus 10 a minute", async () => {
    const site = scriptedSite(policy({ attempts: 10, delay: 1 }, { rate: "1000/s", burst: 1000 }), () => 500);
    const pages = Array.from({ length: 100 }, () => site.polite.fetch(URL_A));
    await site.clock.runToEnd();
    await Promise.all(pages);
    expect(site.seen.length).toBeGreaterThanOrEqual(128);
    expect(site.seen.length).toBeLessThanOrEqual(131);
  });

  it("have a budget per host", async () => {
    const site = scriptedSite(policy({ attempts: 2, delay: 1, budget: { share: 0, perMinute: 1 } }), () => 500);
    const pages = ["a", "a", "b", "b"].map((host) => site.polite.fetch(`https://${host}.example/`));
    await site.clock.runToEnd();
    await Promise.all(pages);
    const hosts = site.seen.map(({ url }) => new URL(url).hostname);
    expect(hosts.filter((host) => host === "a.example")).toHaveLength(3);
    expect(hosts.filter((host) => host === "b.example")).toHaveLength(3);
  });

  it("hold no place while they wait, also at concurrency 1", async () => {
    const limits = { concurrency: 1, cooldown: "5s" };
    const site = scriptedSite(policy({ attempts: 2 }, limits), (n) => (n === 0 ? 429 : 200));
    const page = site.polite.fetch(URL_A);
    await site.clock.runToEnd();
    expect((await page).status).toBe(200);
    expect(site.seen[1].atMs).toBe(5_000);
  });

  it("end at once when the caller gives up", async () => {
    const site = scriptedSite(policy({ attempts: 5, delay: "1h" }), () => 500);
    const controller = new AbortController();
    const page = site.polite.fetch(URL_A, { signal: controller.signal });
    const failure = page.catch((error: unknown) => error);
    await site.clock.advance(1_000);
    controller.abort("enough");
    expect(await failure).toBe("enough");
    expect(site.seen).toHaveLength(1);
    await site.clock.runToEnd();
    expect(site.clock.now()).toBe(1_000);
  });

  it("lengthen their waits by jitter and never shorten them", async () => {
    const site = scriptedSite(policy({ attempts: 2, delay: "4s", jitter: 1 }), (n) => (n === 0 ? 500 : 200));
    const page = site.polite.fetch(URL_A);
    await site.clock.runToEnd();
    await page;
    expect(site.seen[1].atMs).toBeGreaterThanOrEqual(4_000);
  });
});
