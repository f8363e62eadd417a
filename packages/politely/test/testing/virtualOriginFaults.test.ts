import { describe, expect, it } from "vitest";
import { type OriginAnswer, VirtualClock, VirtualOrigin } from "../../src/testing/index.js";
import { failure, track } from "../verbs/support.js";

const url = "https://a.test/";

function originWith(answers: readonly OriginAnswer[]): { clock: VirtualClock; origin: VirtualOrigin } {
  const clock = new VirtualClock();
  return { clock, origin: new VirtualOrigin({ clock, answers }) };
}

describe("a script of answers", () => {
  it("is played in order of arrival, for each host, and plain answers follow", async () => {
    const { origin } = originWith([200, 503, { status: 404, body: "no" }]);
    const statuses: number[] = [];
    for (let index = 0; index < 5; index += 1) statuses.push((await origin.fetch(url)).status);
    expect(statuses).toEqual([200, 503, 404, 200, 200]);
    expect((await origin.fetch("https://b.test/")).status).toBe(200);
    expect((await origin.fetch("https://b.test/")).status).toBe(503);
    expect(origin.refused).toBe(0);
  });

  it("is not used up by refusals, pages or robots.txt", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({
      clock,
      answers: [500, 501],
      pages: { "/page": 204 },
      robots: "User-agent: *\nDisallow: /private\n",
      limits: [{ kind: "sliding-window", rate: "4/s" }],
    });
    const robots = await origin.fetch("https://a.test/robots.txt");
    expect(await robots.text()).toContain("Disallow: /private");
    expect((await origin.fetch("https://a.test/page?x=1")).status).toBe(204);
    expect((await origin.fetch(url)).status).toBe(500);
    const last = [await origin.fetch(url), await origin.fetch(url)];
    expect(last.map(({ status }) => status)).toEqual([501, 429]);
  });

  it("may be a function of the request, with chance from the seed", async () => {
    const run = async (seed: number): Promise<string> => {
      const clock = new VirtualClock();
      const origin = new VirtualOrigin({
        clock,
        seed,
        answers: ({ path, index }, random) => (path === "/a" ? 500 + index : random() < 0.5 ? 404 : undefined),
      });
      const statuses = [(await origin.fetch("https://a.test/a")).status];
      for (let count = 0; count < 60; count += 1) statuses.push((await origin.fetch(url)).status);
      return statuses.join();
    };
    const first = await run(1);
    expect(first.startsWith("500,")).toBe(true);
    expect(first).toMatch(/404.*200|200.*404/);
    expect(await run(1)).toBe(first);
    expect(await run(2)).not.toBe(first);
  });

  it("that throws, or gives what is no answer, rejects the call with that error and counts it", async () => {
    const clock = new VirtualClock();
    const broken = new Error("my own mistake");
    const origin = new VirtualOrigin({
      clock,
      answers: ({ index }) => {
        if (index === 0) throw broken;
        return 99;
      },
    });
    expect(await failure(origin.fetch(url))).toBe(broken);
    await expect(origin.fetch(url)).rejects.toThrow(
      "answers(call).status must be a whole number from 200 to 599; got 99.",
    );
    expect([origin.total, origin.inFlight]).toEqual([2, 0]);
  });
});

describe("pages", () => {
  it("are found by path with the query first, then without", async () => {
    const origin = new VirtualOrigin({ clock: new VirtualClock(), pages: { "/a": 201, "/a?b=1": 202 } });
    const status = async (path: string): Promise<number> => (await origin.fetch(`https://a.test${path}`)).status;
    expect([await status("/a"), await status("/a?b=1"), await status("/a?b=2"), await status("/b")]).toEqual([
      201, 202, 201, 200,
    ]);
  });

  it("include robots.txt, which is missing unless it is given", async () => {
    const clock = new VirtualClock();
    expect((await new VirtualOrigin({ clock }).fetch("https://a.test/robots.txt")).status).toBe(404);
    const origin = new VirtualOrigin({ clock, pages: { "/robots.txt": 503 } });
    expect((await origin.fetch("https://a.test/robots.txt")).status).toBe(503);
  });

  it("with an etag answer 304 to who has it already", async () => {
    const pages = { "/a": { etag: '"v1"', body: "text" } };
    const origin = new VirtualOrigin({ clock: new VirtualClock(), pages });
    const status = async (tag: string, method = "GET"): Promise<number> =>
      (await origin.fetch("https://a.test/a", { method, headers: { "If-None-Match": tag } })).status;
    expect((await origin.fetch("https://a.test/a")).headers.get("etag")).toBe('"v1"');
    expect([
      await status('"v0"'),
      await status('"v0", W/"v1"'),
      await status("*"),
      await status('"v1"', "PUT"),
    ]).toEqual([200, 304, 304, 200]);
    const same = await origin.fetch("https://a.test/a", { headers: { "if-none-match": '"v1"' } });
    expect([same.body, same.headers.get("etag"), same.headers.get("content-length")]).toEqual([null, '"v1"', null]);
  });

  it("send their own headers over the origin's", async () => {
    const { origin } = originWith([{ headers: { SERVER: "own", Date: "never" } }]);
    const first = (await origin.fetch(url)).headers;
    expect([first.get("server"), first.get("date")]).toEqual(["own", "never"]);
    expect((await origin.fetch(url)).headers.get("server")).toBeNull();
  });
});

describe("a fault", () => {
  it("may break the connection when the answer was due, as fetch reports it", async () => {
    const { clock, origin } = originWith([{ fault: "reset", latencyMs: 40 }, "reset"]);
    const error = track(origin.fetch(url));
    await clock.advance(39);
    expect([error.state, origin.inFlight]).toEqual(["pending", 1]);
    await clock.advance(1);
    expect(error.error).toBeInstanceOf(TypeError);
    expect(error.error).toMatchObject({
      message: "fetch failed",
      cause: { code: "ECONNRESET", message: "read ECONNRESET", syscall: "read" },
    });
    expect(origin.inFlight).toBe(0);
    await expect(origin.fetch(url)).rejects.toThrow(TypeError);
    expect(origin.requests.map(({ status, fault }) => [status, fault])).toEqual([
      [undefined, "reset"],
      [undefined, "reset"],
    ]);
  });

  it("may be an answer that never comes, until the client gives up", async () => {
    const { clock, origin } = originWith(["timeout"]);
    const controller = new AbortController();
    const response = track(origin.fetch(url, { signal: controller.signal }));
    await clock.advance(86_400_000);
    expect([response.state, origin.inFlight, clock.pendingTimers]).toEqual(["pending", 1, 0]);
    controller.abort("gave up");
    await clock.settle();
    expect([response.error, origin.inFlight]).toEqual(["gave up", 0]);
  });

  it("may be a body that stalls half way", async () => {
    const { clock, origin } = originWith([{ fault: "stall", body: "0123456789" }]);
    const controller = new AbortController();
    const response = await origin.fetch(url, { signal: controller.signal });
    expect([response.status, response.headers.get("content-length")]).toEqual([200, "10"]);
    const reader = response.body?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe("01234");
    const rest = track<unknown>(reader?.read() ?? Promise.resolve());
    await clock.advance(86_400_000);
    expect([rest.state, origin.inFlight]).toEqual(["pending", 1]);
    controller.abort(new Error("gave up"));
    await clock.settle();
    expect(rest.error).toEqual(new Error("gave up"));
    expect(origin.inFlight).toBe(0);
  });

  it("ends when the reader cancels the body", async () => {
    const { origin } = originWith(["stall"]);
    const response = await origin.fetch(url);
    expect(origin.inFlight).toBe(1);
    await response.body?.cancel();
    expect(origin.inFlight).toBe(0);
  });
});

describe("a body", () => {
  it("that is slow comes in ten pieces, the last at its end, and is in flight until then", async () => {
    const { clock, origin } = originWith([{ body: "abcdefghijklmnopqrst", bodyMs: 1_000, latencyMs: 50 }]);
    const pieces: [number, string][] = [];
    const done = track(
      origin.fetch(url).then(async (response) => {
        pieces.push([clock.now(), "headers"]);
        const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
        for (let piece = await reader?.read(); piece?.done === false; piece = await reader?.read()) {
          pieces.push([clock.now(), piece.value]);
        }
      }),
    );
    await clock.advance(1_049);
    expect(origin.inFlight).toBe(1);
    await clock.advance(1);
    await clock.settle();
    expect([origin.inFlight, done.state]).toEqual([0, "done"]);
    expect(pieces.slice(0, 3)).toEqual([
      [50, "headers"],
      [150, "ab"],
      [250, "cd"],
    ]);
    expect(pieces.at(-1)).toEqual([1_050, "st"]);
    expect(pieces).toHaveLength(11);
  });

  it("that is slow and empty, or shorter than its pieces, still takes its time", async () => {
    for (const body of ["", "abc"]) {
      const { clock, origin } = originWith([{ body, bodyMs: 100 }]);
      const text = track(origin.fetch(url).then((response) => response.text()));
      await clock.advance(99);
      expect(text.state).toBe("pending");
      await clock.advance(1);
      await clock.settle();
      expect(text.value).toBe(body);
    }
  });

  it("that is slow does not wait for its reader", async () => {
    const { clock, origin } = originWith([{ body: "0123456789", bodyMs: 1_000 }]);
    const response = await origin.fetch(url);
    await clock.advance(1_000);
    expect([origin.inFlight, clock.pendingTimers]).toEqual([0, 0]);
    expect(await response.text()).toBe("0123456789");
  });

  it("may be big, and is made as it is read", async () => {
    const { origin } = originWith([{ body: { bytes: 3_000_001 } }, { body: { bytes: 1_073_741_824 } }]);
    const text = await (await origin.fetch(url)).text();
    expect([text.length, text.slice(-2)]).toEqual([3_000_001, "xx"]);
    const huge = await origin.fetch(url);
    expect(huge.headers.get("content-length")).toBe("1073741824");
    await huge.body?.cancel();
  });

  it("may be bytes, which a test can go on using", async () => {
    const bytes = new Uint8Array([1, 2, 3]);
    const { origin } = originWith([{ body: bytes }]);
    bytes.fill(9);
    const response = await origin.fetch(url);
    expect(response.headers.get("content-type")).toBe("application/octet-stream");
    expect([...new Uint8Array(await response.arrayBuffer())]).toEqual([1, 2, 3]);
  });
});
