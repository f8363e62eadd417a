import { describe, expect, it } from "vitest";
import { Flight } from "../../../src/http/flight.js";
import { type Limiter, type Outcome, type Permit, politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { localSite } from "./localSite.js";
import { networkFailure } from "./scripted.js";

const HERE = "127.0.0.2";
const URL_A = "https://a.example/";

/** A flight, and how its permit was released in the end. */
function tracked(): { flight: Flight; released: (Outcome | undefined)[] } {
  const released: (Outcome | undefined)[] = [];
  const permit = {
    startedAtMs: 0,
    waitedMs: 0,
    report: () => undefined,
    release: (outcome?: Outcome) => released.push(outcome),
  };
  return { flight: new Flight(permit as unknown as Permit, new VirtualClock()), released };
}

describe("a request that failed", () => {
  const wrong = new TypeError("Request with GET/HEAD method cannot have body.");

  it("before it was sent is given back", () => {
    const { flight, released } = tracked();
    flight.failed(wrong);
    expect(released).toEqual(["unused"]);
  });

  it("after its headers was sent, so nothing is given back, whatever the error looks like", () => {
    const { flight, released } = tracked();
    flight.answered(200, new Headers());
    flight.failed(wrong);
    expect(released).toEqual([undefined]);
  });

  it("because its caller gave up says nothing, whatever the reason looks like", () => {
    for (const reason of [wrong, networkFailure("ECONNRESET"), networkFailure("ERR_INVALID_URL")]) {
      const { flight, released } = tracked();
      flight.signal = AbortSignal.abort(reason);
      flight.failed(reason);
      expect(released).toEqual([undefined]);
    }
  });

  it("because the caller's own time is over had no answer in time", () => {
    const { flight, released } = tracked();
    const late = new DOMException("too late", "TimeoutError");
    flight.signal = AbortSignal.abort(late);
    flight.failed(late);
    expect(released).toEqual([{ kind: "timeout", because: "no answer in time" }]);
  });
});

describe("a request that was sent", () => {
  it("is not given back when its caller leaves with an error that looks like a wrong argument", async () => {
    const controller = new AbortController();
    const left = new TypeError("left");
    await using site = await localSite(HERE, () => controller.abort(left));
    const polite = politely({ hosts: { [HERE]: { window: "1/h" } } });
    await expect(polite.fetch(site.origin, { signal: controller.signal })).rejects.toBe(left);
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 1, inFlight: 0, cooldownMs: 0 });
    expect(polite.check(HERE).proceed).toBe(false);
  });

  it("is not given back when its body is of another type than its reader wants", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("text"));
    const polite = politely({ hosts: { [HERE]: { window: "1/h" } } });
    const page = await polite.fetch(site.origin);
    await expect(page.formData()).rejects.toThrow(TypeError);
    await polite.idle(HERE);
    expect(polite.check(HERE).proceed).toBe(false);
  });
});

/** A limiter whose fetch gives something else than a plain Response. */
function limiterOf(answer: () => unknown): Limiter {
  const send = async (): Promise<Response> => answer() as Response;
  return politely({ default: { concurrency: 1, rate: "100/s", burst: 100 } }, { fetch: send });
}

describe("an answer", () => {
  it.each([
    ["nothing", () => undefined, "got undefined"],
    ["null", () => null, "got null"],
    ["a text", () => "page", 'got "page"'],
    ["an object without a status", () => ({ ok: true, headers: new Headers() }), "its status is undefined"],
    ["an object without headers", () => ({ status: 200 }), "its headers have no get"],
    ["an object with plain headers", () => ({ status: 200, headers: {} }), "its headers have no get"],
    [
      "an object that throws",
      () => ({
        get status(): number {
          throw new Error("odd");
        },
      }),
      "odd",
    ],
  ])("that is %s is an error that says so, the place free", async (_name, answer, message) => {
    const polite = limiterOf(answer);
    for (let index = 0; index < 3; index++) await expect(polite.fetch(URL_A)).rejects.toThrow(message);
    expect(polite.stats(URL_A)).toMatchObject({ totalRequests: 3, inFlight: 0, cooldownMs: 0 });
  });

  it.each([
    ["a mock", () => ({ status: 200, headers: new Headers(), text: async () => "page" })],
    ["a mock with a map", () => ({ status: 200, headers: new Map(), body: "page", text: async () => "page" })],
    ["a mock with a redirect status", () => ({ status: 302, headers: new Map(), text: async () => "page" })],
    [
      "a mock with a stream",
      () => ({ status: 200, headers: new Headers(), body: new Blob(["page"]).stream(), text: async () => "page" }),
    ],
    ["a Response that was changed", () => Object.assign(new Response("page"), { text: async () => "page" })],
  ])("that is %s is given back as it is, the place free at once", async (_name, answer) => {
    const polite = limiterOf(answer);
    for (let index = 0; index < 3; index++) {
      const page = await polite.fetch(URL_A);
      expect(polite.stats(URL_A)?.inFlight).toBe(0);
      expect(await page.text()).toBe("page");
    }
  });

  it("that is a mock is heard", async () => {
    const polite = limiterOf(() => ({ status: 429, headers: new Headers({ "retry-after": "30" }) }));
    expect((await polite.fetch(URL_A)).status).toBe(429);
    expect(polite.check(URL_A).waitMs).toBeGreaterThan(29_000);
  });
});
