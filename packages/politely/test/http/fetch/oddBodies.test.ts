import { createServer } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { limit, politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { localSite } from "./localSite.js";

const HERE = "127.0.0.2";
const MIB = 1_048_576;

/** A limiter with one place whose requests are answered by `answer`. */
function limiterOf(answer: () => Response) {
  return limit({ concurrency: 1 }, { fetch: async () => answer() });
}

function streamOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  let next = 0;
  return new ReadableStream({
    pull(controller) {
      if (next < chunks.length) controller.enqueue(chunks[next++]);
      else controller.close();
    },
  });
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const nextTurn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

describe("a body that is read late", () => {
  it("is there also when the reason phrase is not ASCII, and stops nobody else", async () => {
    const server = createServer((socket) => {
      socket.once("data", () => {
        socket.end("HTTP/1.1 200 \u597d\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, HERE, resolve));
    const address = server.address();
    const port = typeof address === "object" ? address?.port : 0;
    const polite = politely({ hosts: { [HERE]: { concurrency: 3 } } });
    const responses = await Promise.all([1, 2, 3].map(() => polite.fetch(`http://${HERE}:${port}/`)));
    await nextTurn();
    expect(await Promise.all(responses.map((response) => response.text()))).toEqual(["ok", "ok", "ok"]);
    expect(polite.stats(HERE)?.inFlight).toBe(0);
    server.close();
  });

  it("keeps the bytes of a stream whose maker uses its chunks again", async () => {
    const chunk = bytes("again ");
    const limiter = limiterOf(() => new Response(streamOf([chunk, chunk, chunk])));
    const response = await limiter.fetch("https://a.example/");
    await nextTurn();
    const copy = response.clone();
    expect([await copy.text(), await response.text()]).toEqual(["again again again ", "again again again "]);
    expect(chunk.byteLength).toBe(6);
    expect(limiter.stats().inFlight).toBe(0);
  });

  it("comes through empty chunks", async () => {
    const limiter = limiterOf(() => new Response(streamOf([bytes(""), bytes(""), bytes("hi"), bytes("")])));
    expect(await (await limiter.fetch("https://a.example/")).text()).toBe("hi");
    expect(limiter.stats().inFlight).toBe(0);
  });

  it("that is no stream of bytes fails, and frees its place", async () => {
    const words = new ReadableStream({ start: (controller) => controller.enqueue("text") });
    const limiter = limiterOf(() => new Response(words));
    const response = await limiter.fetch("https://a.example/");
    await expect(response.body?.getReader().read()).rejects.toThrow(TypeError);
    await nextTurn();
    expect(limiter.stats().inFlight).toBe(0);
  });

  it("has a copy with the same status, also an unusual one", async () => {
    const limiter = limiterOf(() => {
      const response = new Response("odd", { status: 299, statusText: "Odd", headers: { "x-a": "1" } });
      Object.defineProperty(response, "status", { value: 999 });
      return response;
    });
    const response = await limiter.fetch("https://a.example/");
    await nextTurn();
    const copy = response.clone();
    expect([copy.status, copy.statusText, copy.headers.get("x-a"), await copy.text()]).toEqual([
      999,
      "Odd",
      "1",
      "odd",
    ]);
  });
});

describe("a large body that nobody reads", () => {
  it("frees its place when its request is aborted", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end(Buffer.alloc(8 * MIB)));
    const polite = politely({ hosts: { [HERE]: { concurrency: 1 } } });
    const controller = new AbortController();
    const response = await polite.fetch(site.origin, { signal: controller.signal });
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(polite.stats(HERE)?.inFlight).toBe(1);
    controller.abort();
    for (let turn = 0; turn < 1_000 && polite.stats(HERE)?.inFlight !== 0; turn++) await nextTurn();
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0, cooldownMs: 0 });
    // It was not dropped, which frees its place as well.
    await expect(response.text()).rejects.toThrow();
  });

  it("frees its place when its timeout is over, which holds nobody: its headers came", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end(Buffer.alloc(8 * MIB)));
    const clock = new VirtualClock();
    const polite = politely({ hosts: { [HERE]: { concurrency: 1 } } }, { clock });
    const response = await polite.fetch(site.origin, { politely: { timeout: 100 } });
    await clock.advance(99);
    expect(polite.stats(HERE)?.inFlight).toBe(1);
    await clock.advance(1);
    for (let turn = 0; turn < 1_000 && polite.stats(HERE)?.inFlight !== 0; turn++) await nextTurn();
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0, cooldownMs: 0 });
    await expect(response.text()).rejects.toThrow();
  });
});

/** Asks for garbage to be collected, again and again until `isTrue`. */
async function collectUntil(isTrue: () => boolean): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let turn = 0; turn < 500 && !isTrue(); turn++) {
    collect();
    await nextTurn();
  }
}

describe("a large body that was dropped", () => {
  it.each<[string, (response: Response) => Promise<unknown>]>([
    ["", async () => undefined],
    [" with a copy", async (response) => response.clone()],
    [" with copies of what was read ahead", (response) => nextTurn().then(() => response.clone().clone())],
    [" and whose copy was cancelled", async (response) => void response.clone().body?.cancel()],
  ])("gives its connection up once it is collected%s", async (_how, use) => {
    let open = 0;
    await using site = await localSite(HERE, (_request, response) => {
      open += 1;
      response.on("close", () => {
        open -= 1;
      });
      response.end(Buffer.alloc(8 * MIB));
    });
    const polite = politely({ hosts: { [HERE]: { concurrency: 5 } } });
    for (let index = 0; index < 3; index++) await use(await polite.fetch(site.origin));
    await collectUntil(() => open === 0);
    expect(open).toBe(0);
    expect(polite.stats(HERE)?.inFlight).toBe(0);
  });
});

describe("a copy of what was read ahead", () => {
  it.each([1, 2])("keeps its bytes when all it was made from is collected: %i deep", async (depth) => {
    const limiter = limiterOf(() => new Response("kept"));
    let originals = 0;
    const gone = new FinalizationRegistry(() => {
      originals += 1;
    });
    const copies = await Promise.all(
      [1, 2, 3].map(async () => {
        const response = await limiter.fetch("https://a.example/");
        gone.register(response, undefined);
        await nextTurn();
        return depth === 1 ? response.clone() : response.clone().clone();
      }),
    );
    await collectUntil(() => originals === 3);
    expect(originals).toBe(3);
    await nextTurn();
    expect(await Promise.all(copies.map((copy) => copy.text()))).toEqual(["kept", "kept", "kept"]);
  });
});

describe("a form that is none", () => {
  it("was sent all the same: what it took is not given back", async () => {
    const limiter = limit({ window: "1/h" }, { fetch: async () => new Response("text") });
    await expect((await limiter.fetch("https://a.example/")).formData()).rejects.toThrow(TypeError);
    expect(limiter.check().proceed).toBe(false);
    expect(limiter.stats().inFlight).toBe(0);
  });
});

describe("fetch", () => {
  it("can be handed to whoever wants one", async () => {
    const { fetch } = limiterOf(() => new Response("page"));
    expect(await (await fetch("https://a.example/")).text()).toBe("page");
  });
});
