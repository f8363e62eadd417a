import { describe, expect, it } from "vitest";
import { VirtualClock, VirtualOrigin } from "../../src/testing/index.js";
import { failure, track } from "../verbs/support.js";

const url = "https://a.test/page?x=1";

describe("fetch of an origin", () => {
  it("gives a real response that knows where it came from, and so does its clone", async () => {
    const origin = new VirtualOrigin({ clock: new VirtualClock() });
    const response = await origin.fetch(`${url}#top`);
    expect(response).toBeInstanceOf(Response);
    expect(response).toMatchObject({ status: 200, ok: true, url, redirected: false, type: "basic" });
    expect(response.clone()).toMatchObject({ url, redirected: false, type: "basic" });
    expect(response.headers.get("date")).toBe("Thu, 01 Jan 2026 00:00:00 GMT");
    expect(response.headers.get("content-type")).toBe("text/plain;charset=utf-8");
    expect(await response.text()).toBe("200 /page?x=1\n");
  });

  it("takes what fetch takes, and can be passed on without its origin", async () => {
    const origin = new VirtualOrigin({ clock: new VirtualClock() });
    const fetch: typeof globalThis.fetch = origin.fetch;
    await fetch(url, { method: "post", body: "x" });
    await fetch(new URL(url), { headers: [["Accept", "text/html"]] });
    await fetch(new Request(url, { method: "DELETE", headers: { "X-A": "1" } }));
    expect(origin.requests.map(({ method }) => method)).toEqual(["POST", "GET", "DELETE"]);
    expect(origin.requests[1].headers).toEqual({ accept: "text/html" });
    expect(origin.requests[2].headers).toEqual({ "x-a": "1" });
  });

  it("answers HEAD with the headers alone", async () => {
    const origin = new VirtualOrigin({ clock: new VirtualClock() });
    const response = await origin.fetch("https://a.test/", { method: "HEAD" });
    expect(response.body).toBeNull();
    expect(response.headers.get("content-length")).toBe("6");
  });

  it.each(["/relative", "not a url", "ftp://a.test/"])("rejects %s as fetch does, and counts nothing", async (bad) => {
    const origin = new VirtualOrigin({ clock: new VirtualClock() });
    await expect(origin.fetch(bad)).rejects.toThrow(TypeError);
    expect(origin.total).toBe(0);
  });

  it("takes virtual time: travel before it is counted, latency until the headers", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({ clock, travel: 30, latency: 70 });
    const response = track(origin.fetch(url));
    await clock.advance(29.999);
    expect(origin.total).toBe(0);
    await clock.advance(0.001);
    expect(origin.requests.map(({ atMs }) => atMs)).toEqual([30]);
    await clock.advance(69.999);
    expect([response.state, origin.inFlight]).toEqual(["pending", 1]);
    await clock.advance(0.001);
    expect([response.state, origin.inFlight]).toEqual(["done", 0]);
  });

  it("works on a clock that calls timers early, and loses nobody's place", async () => {
    const clock = new VirtualClock({ timersFireEarlyMs: 1 });
    const origin = new VirtualOrigin({ clock, latency: 100, limits: [{ kind: "concurrency", count: 1 }] });
    void origin.fetch(url).then(() => origin.fetch(url));
    await clock.runToEnd();
    expect(origin.requests.map(({ status }) => status)).toEqual([200, 200]);
  });
});

describe("a signal", () => {
  it("that is aborted already rejects with its reason, and nothing arrives", async () => {
    const origin = new VirtualOrigin({ clock: new VirtualClock() });
    expect(await failure(origin.fetch(url, { signal: AbortSignal.abort("no") }))).toBe("no");
    expect(await failure(origin.fetch(new Request(url, { signal: AbortSignal.abort("nor") })))).toBe("nor");
    expect(origin.total).toBe(0);
  });

  it("ends a request on its way, which then never arrives", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({ clock, travel: 100 });
    const controller = new AbortController();
    const rejected = failure(origin.fetch(url, { signal: controller.signal }));
    await clock.advance(50);
    controller.abort("enough");
    expect(await rejected).toBe("enough");
    await clock.runToEnd();
    expect([origin.total, clock.pendingTimers]).toEqual([0, 0]);
  });

  it("ends a request in flight at once, with its timer", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({ clock, latency: 100 });
    const controller = new AbortController();
    const rejected = failure(origin.fetch(new Request(url, { signal: controller.signal })));
    await clock.advance(50);
    expect(origin.inFlight).toBe(1);
    controller.abort("enough");
    expect(await rejected).toBe("enough");
    expect([origin.total, origin.inFlight, clock.pendingTimers]).toEqual([1, 0, 0]);
  });

  it("that is aborted after the answer changes nothing", async () => {
    const controller = new AbortController();
    const response = await new VirtualOrigin({ clock: new VirtualClock() }).fetch(url, { signal: controller.signal });
    controller.abort("late");
    expect(await response.text()).toContain("200");
  });
});

describe("redirects", () => {
  const pages = {
    "/old": { redirect: "/new" },
    "/away": { redirect: "https://b.test/there", status: 307 },
    "/loop": { redirect: "/loop" },
    "/ftp": { redirect: "ftp://a.test/" },
    "/empty": 302,
    "/see": { redirect: "/new", status: 303 },
    "/kept": { redirect: "/new", status: 308 },
  };
  const make = (): VirtualOrigin => new VirtualOrigin({ clock: new VirtualClock(), pages });

  it("are followed, each step counted, to the same host and to others", async () => {
    const origin = make();
    const response = await origin.fetch("https://a.test/old#part");
    expect(response).toMatchObject({ status: 200, url: "https://a.test/new", redirected: true });
    expect(await origin.fetch("https://a.test/away")).toMatchObject({ url: "https://b.test/there", redirected: true });
    expect(origin.requests.map((request) => [request.host, request.path, request.status])).toEqual([
      ["a.test", "/old", 302],
      ["a.test", "/new", 200],
      ["a.test", "/away", 307],
      ["b.test", "/there", 200],
    ]);
  });

  it("are given back when manual, as Node does", async () => {
    const response = await make().fetch("https://a.test/old", { redirect: "manual" });
    expect(response).toMatchObject({ status: 302, url: "https://a.test/old", redirected: false, type: "basic" });
    expect(response.headers.get("location")).toBe("/new");
  });

  it("without a place to go are answers like any other", async () => {
    expect(await make().fetch("https://a.test/empty")).toMatchObject({ status: 302, redirected: false });
  });

  it.each([
    ["/old", "error", "unexpected redirect"],
    ["/loop", "follow", "redirect count exceeded"],
    ["/ftp", "follow", "URL scheme must be a HTTP(S) scheme"],
  ] as const)("of %s with redirect %s reject: %s", async (path, redirect, cause) => {
    const origin = make();
    const error = await failure(origin.fetch(`https://a.test${path}`, { redirect }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ message: "fetch failed", cause: { message: cause } });
    expect(origin.total).toBe(path === "/loop" ? 21 : 1);
  });

  it("turn POST into GET as fetch does, and keep it with 308", async () => {
    const origin = make();
    const post = { method: "POST", body: "x", headers: { "content-type": "text/plain", authorization: "secret" } };
    for (const path of ["/old", "/see", "/kept"]) await origin.fetch(`https://a.test${path}`, post);
    const methods = origin.requests.map(({ method, headers }) => `${method} ${headers["content-type"] ?? "-"}`);
    expect(methods).toEqual([
      "POST text/plain",
      "GET -",
      "POST text/plain",
      "GET -",
      "POST text/plain",
      "POST text/plain",
    ]);
  });

  it("keep a secret from other sites", async () => {
    const origin = make();
    const headers = { authorization: "secret", cookie: "a=b", accept: "text/html" };
    await origin.fetch("https://a.test/old", { headers });
    await origin.fetch("https://a.test/away", { headers });
    expect(origin.requests.map((request) => request.headers.authorization)).toEqual([
      "secret",
      "secret",
      "secret",
      undefined,
    ]);
    expect(origin.requests[3].headers).toEqual({ accept: "text/html" });
  });
});

describe("hosts", () => {
  it("may each behave in their own way, with a port where it matters", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({
      clock,
      answers: () => 404,
      hosts: { "API.test": { answers: () => 201 }, "api.test:8443": { answers: () => 202 } },
    });
    const status = async (target: string): Promise<number> => (await origin.fetch(target)).status;
    expect(await status("https://api.test/")).toBe(201);
    expect(await status("https://api.test:9000/")).toBe(201);
    expect(await status("https://api.test:8443/")).toBe(202);
    expect(await status("https://other.test/")).toBe(404);
    expect([origin.host("api.test").total, origin.host("api.test:8443").total]).toEqual([2, 1]);
  });

  it("have independent streams of chance, so that one does not change another", async () => {
    const run = async (others: number): Promise<readonly number[]> => {
      const clock = new VirtualClock();
      const origin = new VirtualOrigin({ clock, seed: 7, latency: { kind: "uniform", minMs: 0, maxMs: 100 } });
      const atMs: number[] = [];
      for (let index = 0; index < others; index += 1) void origin.fetch("https://b.test/");
      for (let index = 0; index < 5; index += 1)
        void origin.fetch("https://a.test/").then(() => atMs.push(clock.now()));
      await clock.runToEnd();
      return atMs;
    };
    expect(await run(0)).toEqual(await run(3));
  });

  it("do not all get the same chance", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({ clock, latency: { kind: "uniform", minMs: 0, maxMs: 100 } });
    const atMs: number[] = [];
    for (const name of ["a", "b", "c"]) void origin.fetch(`https://${name}.test/`).then(() => atMs.push(clock.now()));
    await clock.runToEnd();
    expect(new Set(atMs).size).toBe(3);
  });
});

describe("the bound of an origin", () => {
  it("rejects what would make the counts wrong, and says which option to raise", async () => {
    const origin = new VirtualOrigin({ clock: new VirtualClock(), maxArrivals: 2 });
    await origin.fetch(url);
    await origin.fetch("https://b.test/");
    await expect(origin.fetch(url)).rejects.toThrow("has counted 2 arrivals, its bound. Raise maxArrivals.");
    expect(origin.total).toBe(2);
  });
});
