import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { failureOf } from "../../../src/http/failure.js";
import { networkError } from "../../../src/http/redirect.js";
import { DeadlineError, politely } from "../../../src/index.js";
import type { VirtualClock } from "../../../src/testing/index.js";
import { localSite } from "./localSite.js";
import { networkFailure, scriptedSite } from "./scripted.js";

const HERE = "127.0.0.2";

/** A failure as Node's fetch reports one that has no code. */
function fetchFailure(message: string): TypeError {
  return new TypeError("fetch failed", { cause: new Error(message) });
}

function coded(code: string): Error {
  return Object.assign(new Error("incorrect header check"), { code });
}

describe("what a failure says about the site", () => {
  it.each([
    ["a refused connection", networkFailure("ECONNREFUSED"), "server_error"],
    ["a reset connection", networkFailure("ECONNRESET"), "server_error"],
    ["a name that is not found", networkFailure("ENOTFOUND"), "server_error"],
    ["undici's closed socket", networkFailure("UND_ERR_SOCKET"), "server_error"],
    ["a bad certificate", networkFailure("CERT_HAS_EXPIRED"), "server_error"],
    ["no connection in time", networkFailure("UND_ERR_CONNECT_TIMEOUT"), "timeout"],
    ["no headers in time", networkFailure("UND_ERR_HEADERS_TIMEOUT"), "timeout"],
    ["a socket's own timeout", networkFailure("ETIMEDOUT"), "timeout"],
    ["AbortSignal.timeout", new DOMException("too late", "TimeoutError"), "timeout"],
    ["an abort", new DOMException("enough", "AbortError"), undefined],
    ["an argument that makes no sense", new TypeError("'b a d' is not a valid HTTP method."), "unused"],
    ["a URL that is none", networkFailure("ERR_INVALID_URL"), "unused"],
    ["a browser's silence", new TypeError("Failed to fetch"), "server_error"],
    ["a redirect that was not wanted", fetchFailure("unexpected redirect"), undefined],
    ["too many redirects", fetchFailure("redirect count exceeded"), undefined],
    ["a redirect to another scheme", fetchFailure("URL scheme must be a HTTP(S) scheme"), undefined],
    ["a body that is not the one expected", fetchFailure("integrity mismatch"), undefined],
    ["a redirect of our own that fails", networkError("a.example redirects to ftp:"), undefined],
    ["a port that is never used", fetchFailure("bad port"), undefined],
    ["a failure of the program's own body", fetchFailure("no more"), undefined],
    ["a file that cannot be read", new TypeError("fetch failed", { cause: coded("ENOENT") }), undefined],
    ["a body that is no gzip", new TypeError("terminated", { cause: coded("Z_DATA_ERROR") }), undefined],
    [
      "a body that is no brotli",
      new TypeError("terminated", { cause: coded("ERR__ERROR_FORMAT_PADDING_1") }),
      undefined,
    ],
    ["anything else", new Error("what?"), undefined],
    ["no error at all", "text", undefined],
  ])("%s", (_name, error, outcome) => {
    expect(failureOf(error)).toBe(outcome);
  });

  it("is found through a loop of causes", () => {
    const error = new Error("loop");
    error.cause = error;
    expect(failureOf(error)).toBeUndefined();
  });
});

describe("fetch that fails", () => {
  it("because the body to send fails says nothing about the site, however it is given", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end());
    const polite = politely({ hosts: { [HERE]: { concurrency: 1, backoff: "linear" } } });
    const missing = () => Readable.toWeb(createReadStream("/no/such/file")) as unknown as ReadableStream;
    const failing = () => new ReadableStream({ pull: (stream) => stream.error(new Error("no more")) });
    for (const body of [missing, failing]) {
      const init = () => ({ method: "POST", body: body(), duplex: "half" }) as RequestInit;
      await expect(polite.fetch(site.origin, init())).rejects.toThrow();
      await expect(polite.fetch(new Request(site.origin, init()))).rejects.toThrow();
    }
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 4, inFlight: 0, cooldownMs: 0 });
  });

  it("because a connection breaks while a stream is sent is an error of the server", async () => {
    const server = createServer((request) => void request.once("data", () => request.socket.destroy()));
    await new Promise<void>((resolve) => server.listen(0, HERE, resolve));
    const { port } = server.address() as AddressInfo;
    const polite = politely({ hosts: { [HERE]: { concurrency: 1, backoff: "linear" } } });
    const body = new ReadableStream({
      async pull(stream) {
        await new Promise((resolve) => void setTimeout(resolve, 1));
        stream.enqueue(new Uint8Array(9));
      },
    });
    const init = { method: "POST", body, duplex: "half" } as RequestInit;
    await expect(polite.fetch(`http://${HERE}:${port}`, init)).rejects.toThrow();
    expect(polite.stats(HERE)?.cooldownMs).toBeGreaterThan(4_000);
    await new Promise((resolve) => server.close(resolve));
  });

  it("because the answer is not compressed as it says is no trouble on the way", async () => {
    await using site = await localSite(HERE, (_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip" }).end("no gzip");
    });
    const polite = politely({ hosts: { [HERE]: { concurrency: 1, backoff: "linear" } } });
    const response = await polite.fetch(site.origin);
    await expect(response.text()).rejects.toThrow();
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0, cooldownMs: 0 });
  });

  it("because the connection is refused is an error of the server, the place free", async () => {
    const polite = politely({ hosts: { [HERE]: { concurrency: 1, backoff: "linear" } } });
    const gone = await localSite(HERE, (_request, response) => response.end());
    await gone[Symbol.asyncDispose]();
    await expect(polite.fetch(gone.origin)).rejects.toMatchObject({ cause: { code: "ECONNREFUSED" } });
    const stats = polite.stats(HERE);
    expect(stats).toMatchObject({ totalRequests: 1, inFlight: 0 });
    expect(stats?.cooldownMs).toBeGreaterThan(4_000);
  });

  it("because the connection is reset in the middle of the body is judged by its status", async () => {
    await using site = await localSite(HERE, (_request, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("half");
      setTimeout(() => response.destroy(), 10);
    });
    const polite = politely({ hosts: { [HERE]: { concurrency: 1 } } });
    const response = await polite.fetch(site.origin);
    await expect(response.text()).rejects.toThrow();
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0, cooldownMs: 0 });
  });

  it.each([
    ["the caller's AbortSignal.timeout", () => ({ signal: AbortSignal.timeout(60) })],
    ["politely.timeout", () => ({ politely: { timeout: 60 } })],
  ])("because %s ends a healthy stream holds nobody", async (_name, init) => {
    await using site = await localSite(HERE, (_request, response) => void response.write("data: 1\n\n"));
    const polite = politely({ hosts: { [HERE]: { concurrency: 1, backoff: "linear" } } });
    const response = await polite.fetch(site.origin, init());
    await expect(response.text()).rejects.toMatchObject({ name: "TimeoutError" });
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0, cooldownMs: 0 });
  });

  it("says in explain what happened, not only that something did", async () => {
    const { clock, polite } = scriptedSite({}, () => networkFailure("ENOTFOUND"));
    const page = polite.fetch("https://a.example/");
    await Promise.all([expect(page).rejects.toThrow("fetch failed"), clock.advance(1)]);
    expect(polite.explain("a.example").causes[0]).toMatchObject({ limit: "cooldown", because: "ENOTFOUND" });
  });

  it("because its arguments make no sense gives its unit back", async () => {
    const polite = politely({ hosts: { [HERE]: { window: "1/h" } } });
    await expect(polite.fetch(`http://${HERE}:9/`, { method: "b a d" })).rejects.toThrow(TypeError);
    expect(polite.check(HERE).proceed).toBe(true);
    await expect(polite.fetch("no url")).rejects.toThrow(TypeError);
    await expect(polite.fetch("ftp://x.example/")).rejects.toThrow(TypeError);
  });

  it("because fetch never uses its port gives its unit back", async () => {
    const polite = politely({ hosts: { [HERE]: { window: "1/h", backoff: "exponential" } } });
    await expect(polite.fetch(`http://${HERE}:6000/`)).rejects.toMatchObject({ cause: { message: "bad port" } });
    expect(polite.check(HERE).proceed).toBe(true);
  });

  it("because fetch never uses the port that the platform's own redirect leads to gives nothing back", async () => {
    await using site = await localSite(HERE, (_request, response) => {
      response.writeHead(302, { location: `http://${HERE}:6000/` }).end();
    });
    const polite = politely({ hosts: { [HERE]: { window: "1/h" } } });
    const page = polite.fetch(site.origin, { integrity: `sha256-${"A".repeat(43)}=` });
    await expect(page).rejects.toMatchObject({ cause: { message: "bad port" } });
    expect(polite.check(HERE).proceed).toBe(false);
  });

  it("because the caller gives up while waiting takes nothing and leaves the queue", async () => {
    const { clock, polite, seen } = scriptedSite({ default: { window: "1/h" } }, () => 200);
    await polite.fetch("https://a.example/");
    const controller = new AbortController();
    const page = polite.fetch("https://a.example/", { signal: controller.signal });
    await clock.advance(10);
    expect(polite.stats("a.example")?.waiting).toBe(1);
    controller.abort(new Error("enough"));
    await expect(page).rejects.toThrow("enough");
    expect(polite.stats("a.example")).toMatchObject({ waiting: 0, cancelledRequests: 1 });
    expect(seen).toHaveLength(1);
  });

  it("because a Request's own signal aborts does the same", async () => {
    const { clock, polite } = scriptedSite({ default: { window: "1/h" } }, () => 200);
    await polite.fetch("https://a.example/");
    const controller = new AbortController();
    const page = polite.fetch(new Request("https://a.example/", { signal: controller.signal }));
    await clock.advance(10);
    controller.abort(new Error("enough"));
    await expect(page).rejects.toThrow("enough");
  });

  it("because it was aborted before it began sends nothing", async () => {
    const { polite, seen } = scriptedSite({}, () => 200);
    await expect(polite.fetch("https://a.example/", { signal: AbortSignal.abort("no") })).rejects.toBe("no");
    expect(seen).toHaveLength(0);
    expect(polite.check("a.example").proceed).toBe(true);
  });

  it("because it would wait too long says so at once", async () => {
    const { polite } = scriptedSite({ default: { window: "1/h" } }, () => 200);
    await polite.fetch("https://a.example/");
    const page = polite.fetch("https://a.example/", { politely: { maxWait: "1s" } });
    await expect(page).rejects.toBeInstanceOf(DeadlineError);
  });
});

describe("a caller's own AbortSignal.timeout", () => {
  /** As `AbortSignal.timeout` on the virtual clock. */
  const after = (clock: VirtualClock, ms: number): AbortSignal => {
    const controller = new AbortController();
    clock.setTimer(clock.now() + ms, () => controller.abort(new DOMException("too late", "TimeoutError")));
    return controller.signal;
  };

  it("counts as no answer in time when it was spent on the way", async () => {
    const { clock, polite } = scriptedSite({}, () => ({ status: 200, latencyMs: 60_000 }));
    const page = polite.fetch("https://a.example/", { signal: after(clock, 3_000) });
    await Promise.all([expect(page).rejects.toMatchObject({ name: "TimeoutError" }), clock.advance(3_000)]);
    expect(polite.stats("a.example")).toMatchObject({ inFlight: 0, cooldownMs: 5_000 });
    expect(polite.explain("a.example").causes[0].because).toBe("no answer in time");
  });

  it("says nothing about the site when it was spent in the queue", async () => {
    const { clock, polite } = scriptedSite({ default: { minDelay: "2s" } }, () => ({ status: 200, latencyMs: 60_000 }));
    const first = polite.fetch("https://a.example/");
    const page = polite.fetch("https://a.example/", { signal: after(clock, 3_000) });
    await Promise.all([expect(page).rejects.toMatchObject({ name: "TimeoutError" }), clock.advance(3_000)]);
    expect(polite.stats("a.example")).toMatchObject({ inFlight: 1, cooldownMs: 0 });
    await clock.runToEnd();
    await first;
  });
});

describe("a timeout", () => {
  it("starts at the grant, not in the queue", async () => {
    const { clock, polite, seen } = scriptedSite({ default: { minDelay: "60s" } }, () => ({
      status: 200,
      latencyMs: 900,
    }));
    const pages = [1, 2, 3].map(() => polite.fetch("https://a.example/", { politely: { timeout: "1s" } }));
    await clock.runToEnd();
    expect((await Promise.all(pages)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(seen.map(({ atMs }) => atMs)).toEqual([0, 60_000, 120_000]);
  });

  it("counts as no answer in time: the host backs off", async () => {
    const { clock, polite } = scriptedSite({ default: { concurrency: 1 } }, () => ({ status: 200, latencyMs: 60_000 }));
    const page = polite.fetch("https://a.example/", { politely: { timeout: "1s" } });
    const failure = page.catch((error: unknown) => error);
    await clock.advance(2_000);
    expect(await failure).toMatchObject({ name: "TimeoutError" });
    expect(polite.stats("a.example")).toMatchObject({ inFlight: 0, cooldownMs: 4_000 });
  });

  it("that makes no sense is an error before anything is taken", async () => {
    const { polite, seen } = scriptedSite({}, () => 200);
    await expect(polite.fetch("https://a.example/", { politely: { timeout: -1 } })).rejects.toThrow(RangeError);
    expect(seen).toHaveLength(0);
    expect(polite.check("a.example").proceed).toBe(true);
  });

  it("also ends a body that stalls for ever", async () => {
    await using site = await localSite(HERE, (_request, response) => void response.write("half"));
    const polite = politely({ hosts: { [HERE]: { concurrency: 1 } } });
    const response = await polite.fetch(site.origin, { politely: { timeout: 100 } });
    await expect(response.text()).rejects.toMatchObject({ name: "TimeoutError" });
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0 });
  });
});
