import { once } from "node:events";
import { connect } from "node:net";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import {
  type ListeningOrigin,
  type OriginLimit,
  VirtualClock,
  VirtualOrigin,
  type VirtualOriginOptions,
} from "../../src/testing/index.js";
import { seeded } from "../laws/seeded.js";
import { failure } from "../verbs/support.js";

const open: ListeningOrigin[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function listening(
  options: VirtualOriginOptions,
): Promise<{ origin: VirtualOrigin; url: string; server: ListeningOrigin }> {
  const origin = new VirtualOrigin(options);
  const server = await origin.listen();
  open.push(server);
  return { origin, url: server.url, server };
}

/** Lets real input and output happen until the condition holds. Virtual time stays where it is. */
async function until(isTrue: () => boolean): Promise<void> {
  const clock = new VirtualClock();
  for (let turns = 0; !isTrue(); turns += 1) {
    if (turns > 1_000_000) throw new Error("This never became true.");
    await clock.settle();
  }
}

describe("an origin that listens", () => {
  it("limits real requests in real time, and counts them as its own", async () => {
    const { origin, url } = await listening({ limits: [{ kind: "sliding-window", rate: "2/h" }] });
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const answers = [await fetch(`${url}/a?b=c`), await fetch(url), await fetch(url)];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(await answers[0].text()).toBe("200 /a?b=c\n");
    expect(Number(answers[2].headers.get("retry-after"))).toBeGreaterThan(3_500);
    expect([origin.total, origin.refused, origin.host("127.0.0.1").total]).toEqual([3, 1, 3]);
    expect(origin.requests[0]).toMatchObject({ host: "127.0.0.1", path: "/a?b=c", method: "GET" });
    expect(origin.requests[0].headers.host).toBe(url.slice("http://".length));
  });

  it("takes fetch and real requests together without a virtual clock", async () => {
    const { origin, url } = await listening({});
    await Promise.all([fetch(url), origin.fetch("https://a.test/")]);
    expect(origin.total).toBe(2);
  });

  it("plays the host that a request names", async () => {
    const { origin, server } = await listening({ hosts: { "a.test": { answers: () => 418 } } });
    const socket = connect(server.port, "127.0.0.1");
    socket.end("GET / HTTP/1.1\r\nHost: A.test\r\nConnection: close\r\n\r\n");
    const [first] = (await once(socket, "data")) as [Buffer];
    expect(first.toString()).toMatch(/^HTTP\/1\.1 418 /);
    expect(origin.host("a.test").total).toBe(1);
    socket.destroy();
  });

  it("answers 400 to what names no host, and counts nothing", async () => {
    const { origin, server } = await listening({});
    const socket = connect(server.port, "127.0.0.1");
    socket.end("GET / HTTP/1.1\r\nHost: [\r\nConnection: close\r\n\r\n");
    const [first] = (await once(socket, "data")) as [Buffer];
    expect(first.toString()).toMatch(/^HTTP\/1\.1 400 /);
    expect(origin.total).toBe(0);
    socket.destroy();
  });

  it("answers 500 with the message when the test's own function throws", async () => {
    const mistakes = [new Error("my own mistake"), new TypeError("another", { cause: new Error("why") })];
    const { url } = await listening({
      answers: ({ index }) => {
        throw mistakes[index];
      },
    });
    for (const mistake of mistakes) {
      const response = await fetch(url);
      expect([response.status, await response.text()]).toEqual([500, `${String(mistake)}\n`]);
    }
  });

  it("sends redirects, 304 and HEAD as fetch expects them", async () => {
    const { url } = await listening({ pages: { "/old": { redirect: "/new" }, "/new": { etag: '"1"', body: "new" } } });
    const followed = await fetch(`${url}/old`);
    expect([followed.url, followed.redirected, await followed.text()]).toEqual([`${url}/new`, true, "new"]);
    expect((await fetch(`${url}/old`, { redirect: "manual" })).status).toBe(302);
    expect((await fetch(`${url}/new`, { headers: { "if-none-match": '"1"' } })).status).toBe(304);
    expect((await fetch(`${url}/new`, { method: "HEAD" })).headers.get("content-length")).toBe("3");
  });

  it("sends slow and big bodies whole", async () => {
    const { url } = await listening({
      pages: { "/slow": { body: "0123456789", bodyMs: 20 }, "/big": { body: { bytes: 5_000_000 } } },
    });
    expect(await (await fetch(`${url}/slow`)).text()).toBe("0123456789");
    expect((await (await fetch(`${url}/big`)).arrayBuffer()).byteLength).toBe(5_000_000);
  });

  it("sends slow bodies in order while the program is busy", async () => {
    const { origin } = await listening({ pages: { "/slow": { body: "0123456789", bodyMs: 20 } } });
    for (let round = 0; round < 5; round += 1) {
      const texts = Array.from({ length: 20 }, async () => (await origin.fetch("https://a.test/slow")).text());
      const endMs = performance.now() + 8;
      while (performance.now() < endMs);
      expect(new Set(await Promise.all(texts))).toEqual(new Set(["0123456789"]));
    }
  });

  it("sends a big body to a slow reader without piling up listeners", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on("warning", note);
    const { url } = await listening({ answers: () => ({ body: { bytes: 20_000_000 } }) });
    let bytes = 0;
    for await (const chunk of (await fetch(url)).body ?? []) bytes += chunk.length;
    process.off("warning", note);
    expect([bytes, warnings]).toEqual([20_000_000, []]);
  });

  it("breaks connections as asked, with the error that its own fetch gives", async () => {
    const { origin, url } = await listening({ answers: () => "reset" });
    const real = await failure(fetch(url));
    const virtual = await failure(origin.fetch(url));
    for (const error of [real, virtual]) {
      expect(error).toBeInstanceOf(TypeError);
      expect(error).toMatchObject({ message: "fetch failed", cause: { code: "ECONNRESET", syscall: "read" } });
    }
    expect(origin.inFlight).toBe(0);
  });

  it("notices a client that goes away", async () => {
    const { origin, url } = await listening({ answers: () => "timeout" });
    const controller = new AbortController();
    const gone = failure(fetch(url, { signal: controller.signal }));
    await until(() => origin.inFlight === 1);
    controller.abort("enough");
    expect(await gone).toBe("enough");
    await until(() => origin.inFlight === 0);
  });
});

describe("closing", () => {
  it("ends cleanly with requests that wait, bodies that stall and idle connections", async () => {
    const { origin, url, server } = await listening({
      pages: { "/timeout": "timeout", "/stall": "stall", "/late": { latencyMs: 3_600_000 } },
    });
    await fetch(url);
    const stalled = await fetch(`${url}/stall`);
    const ends = [failure(stalled.text()), failure(fetch(`${url}/timeout`)), failure(fetch(`${url}/late`))];
    await until(() => origin.inFlight === 3);
    await server.close();
    for (const error of await Promise.all(ends)) expect(error).toBeInstanceOf(TypeError);
    expect([origin.inFlight, origin.total]).toEqual([0, 4]);
    await expect(fetch(url)).rejects.toThrow(TypeError);
  });

  it("twice changes nothing, and the port is free again", async () => {
    const origin = new VirtualOrigin();
    const server = await origin.listen();
    await Promise.all([server.close(), server.close()]);
    await server.close();
    const again = await origin.listen({ port: server.port });
    expect(again.port).toBe(server.port);
    await again[Symbol.asyncDispose]();
  });
});

describe("a port", () => {
  it("that is taken rejects with the system's error", async () => {
    const { server } = await listening({});
    await expect(new VirtualOrigin().listen({ port: server.port })).rejects.toMatchObject({ code: "EADDRINUSE" });
  });

  it.each([-1, 65_536, 1.5])("of %s is a RangeError", async (port) => {
    await expect(new VirtualOrigin().listen({ port })).rejects.toThrow(RangeError);
  });
});

describe("the virtual origin and the real server", () => {
  const limits: OriginLimit[] = [
    { kind: "leaky-bucket", rate: "5/s", burst: 3, nodelay: true },
    { kind: "fixed-window", rate: "12/5s" },
    { kind: "sliding-window", rate: "9/3s" },
    { kind: "token-bucket", rate: "4/s", burst: 5 },
    { kind: "penalty-box", rate: "4/2s", banMs: 1_500 },
  ];

  it("decide and say the same for the same arrivals", async () => {
    const options = { limits, quotaHeaders: { families: ["list", "triple", "x"] }, answers: [200, 503, 404] } as const;
    const said = ["date", "retry-after", "ratelimit", "ratelimit-policy", "ratelimit-reset", "x-ratelimit-remaining"];
    const gaps = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 900 })), { minLength: 1, maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(fc.subarray(limits, { minLength: 1 }), gaps, async (chosen, gapsMs) => {
        const clock = new VirtualClock();
        const virtual = new VirtualOrigin({ clock, ...options, limits: chosen });
        const { origin: real, url, server } = await listening({ clock, ...options, limits: chosen });
        for (const [index, gapMs] of gapsMs.entries()) {
          await clock.advance(gapMs);
          const [one, other] = await Promise.all([virtual.fetch(`http://a.test/${index}`), fetch(`${url}/${index}`)]);
          const summary = ({ status, headers }: Response): unknown => [status, said.map((name) => headers.get(name))];
          expect(summary(other)).toEqual(summary(one));
          expect(await other.text()).toBe(await one.text());
        }
        const decided = (origin: VirtualOrigin): unknown =>
          origin.requests.map(({ atMs, status, refusedBy, trueWaitMs }) => [atMs, status, refusedBy, trueWaitMs]);
        expect(decided(real)).toEqual(decided(virtual));
        expect(real.arrivalsBeforeRetryAfter).toBe(virtual.arrivalsBeforeRetryAfter);
        await server.close();
      }),
      seeded(15),
    );
  });

  it("have the same in flight, for the same latencies and concurrency", async () => {
    const clock = new VirtualClock();
    const options = {
      clock,
      latency: { kind: "uniform", minMs: 10, maxMs: 90 },
      limits: [{ kind: "concurrency", count: 3 }],
    } as const;
    const virtual = new VirtualOrigin(options);
    const { origin: real, url } = await listening(options);
    const answers: Promise<unknown>[] = [];
    for (let index = 0; index < 60; index += 1) {
      // The same host, so that both draw the same chance.
      answers.push(virtual.fetch("http://127.0.0.1/"), fetch(url));
      await until(() => real.total === index + 1);
      await clock.advance((index * 7) % 23);
    }
    await clock.runToEnd();
    await Promise.all(answers);
    expect(real.requests.map(({ status }) => status)).toEqual(virtual.requests.map(({ status }) => status));
    expect(real.refused).toBeGreaterThan(5);
    expect([real.peakInFlight, real.inFlight]).toEqual([virtual.peakInFlight, 0]);
  });
});
