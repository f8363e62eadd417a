import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { MockAgent } from "undici";
import { afterEach, describe, expect, it } from "vitest";
import { limit, politely } from "../../../src/index.js";
import { seeded } from "../../laws/seeded.js";
import { localSite } from "./localSite.js";

const HERE = "127.0.0.2";
/** Long enough for bytes to cross the loopback interface, and for all that follows from them. */
const TURN_MS = 8;

const STEPS = [
  "text",
  "json",
  "arrayBuffer",
  "bytes",
  "blob",
  "read stream",
  "read one chunk",
  "cancel",
  "copy",
  "copy past us",
  "look",
  "abort",
  "finish",
  "reset",
] as const;
type Step = (typeof STEPS)[number];

/** None is so long that it matters how much of a body is let in before it is read. */
const PIECES = {
  page: Buffer.from("page"),
  json: Buffer.from('{"a":1}'),
  marked: Buffer.from("\uFEFFmarked"),
  "half a letter": Buffer.from("é").subarray(0, 1),
  "its other half": Buffer.from("é").subarray(1),
  "no letters": Buffer.from([0xff, 0xfe, 0x00]),
};
type Piece = keyof typeof PIECES;

interface Script {
  /** Not none: what an abort means for an empty body depends, with Node's own, on whether its end came with its headers. */
  readonly pieces: readonly Piece[];
  readonly isCompressed: boolean;
  /** The site has said all before the first step. */
  readonly isEnded: boolean;
  readonly steps: readonly Step[];
}

const scripts: fc.Arbitrary<Script> = fc.record({
  pieces: fc.array(fc.constantFrom(...(Object.keys(PIECES) as Piece[])), { minLength: 1, maxLength: 3 }),
  isCompressed: fc.boolean(),
  isEnded: fc.boolean(),
  steps: fc.array(fc.constantFrom(...STEPS), { minLength: 1, maxLength: 5 }),
});

function turn(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, TURN_MS));
}

/** What came of something, so that it can be compared. */
async function fateOf(what: () => unknown): Promise<unknown> {
  try {
    const value = await what();
    if (value instanceof Blob) return ["blob", value.type, await value.text()];
    if (value instanceof ArrayBuffer) return ["buffer", Buffer.from(value).toString("base64")];
    if (ArrayBuffer.isView(value)) return [value.constructor.name, Buffer.from(value.buffer).toString("base64")];
    return value instanceof Response ? "a response" : value;
  } catch (error) {
    const { name, message, cause } = error as Error & { cause?: { code?: string } };
    return ["failed", name, message, cause?.code];
  }
}

async function readStream(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body ?? []) chunks.push(chunk);
  return Buffer.concat(chunks).toString("base64");
}

/** Only whether there is one: its size is the platform's to choose. */
async function readOne(response: Response): Promise<unknown> {
  const reader = response.body?.getReader();
  const chunk = await reader?.read();
  reader?.releaseLock();
  return chunk?.done;
}

/** Plays a script with a `fetch`, and tells what every step came to. */
async function play(fetch: typeof globalThis.fetch, script: Script): Promise<unknown[]> {
  let answer: ServerResponse | undefined;
  await using site = await localSite(HERE, (_request, response) => {
    answer = response;
    const pieces = script.pieces.map((name) => PIECES[name]);
    const body = script.isCompressed ? [gzipSync(Buffer.concat(pieces))] : pieces;
    if (script.isCompressed) response.setHeader("content-encoding", "gzip");
    response.flushHeaders();
    for (const piece of body) response.write(piece);
    if (script.isEnded) response.end();
  });
  const controller = new AbortController();
  const response = await fetch(site.origin, { signal: controller.signal });
  await turn();
  const fates: Promise<unknown>[] = [];
  const take = (step: Step): unknown => {
    if (step === "finish") return void answer?.end();
    if (step === "reset") return void answer?.destroy();
    if (step === "abort") return controller.abort(new Error("enough"));
    if (step === "look") return [response.bodyUsed, response.body?.locked];
    if (step === "cancel") return response.body?.cancel();
    if (step === "read stream") return readStream(response);
    if (step === "read one chunk") return readOne(response);
    if (step === "copy") return response.clone().text();
    if (step === "copy past us") return Response.prototype.clone.call(response).text();
    // Node 20 has no bytes() yet.
    return step in response ? (response as unknown as Record<string, () => unknown>)[step]() : undefined;
  };
  for (const step of [...script.steps, "finish"] as const) {
    fates.push(fateOf(() => take(step)));
    await turn();
  }
  const isLate = new Promise((resolve) => setTimeout(resolve, 1_000, "never"));
  const told = await Promise.all(fates.map((fate) => Promise.race([fate, isLate])));
  const abortAt = script.steps.indexOf("abort");
  // What Node has left to read after an abort depends on whether the end of a body came with its headers.
  return abortAt < 0 ? told : told.slice(0, abortAt + 1);
}

describe("a body on its way through Node's own fetch", () => {
  it("is read, copied, cancelled, aborted and broken as the platform's own is, and its place comes back", async () => {
    await fc.assert(
      fc.asyncProperty(scripts, async (script) => {
        const limiter = politely({ hosts: { [HERE]: { concurrency: 1 } } });
        const [theirs, ours] = await Promise.all([play(globalThis.fetch, script), play(limiter.fetch, script)]);
        expect(ours).toEqual(theirs);
        expect(limiter.stats(HERE)).toMatchObject({ totalRequests: 1, inFlight: 0 });
      }),
      seeded(60),
    );
  });

  it("cannot be read after an abort, although it had arrived", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("page"));
    const limiter = politely({ hosts: { [HERE]: { concurrency: 1 } } });
    for (const read of ["text", "json", "arrayBuffer", "blob"] as const) {
      const controller = new AbortController();
      const response = await limiter.fetch(site.origin, { signal: controller.signal });
      await turn();
      controller.abort(new Error("enough"));
      await expect(response[read]()).rejects.toThrow(/enough|abort/);
    }
    expect(limiter.stats(HERE)).toMatchObject({ totalRequests: 4, inFlight: 0 });
  });

  it("is whole, however much of it came before anybody wanted it", async () => {
    const body = Buffer.from(Array.from({ length: 5_000_000 }, (_, index) => index % 251));
    await using site = await localSite(HERE, (_request, response) => response.end(body));
    const { fetch } = politely({ hosts: { [HERE]: { concurrency: 4 } } });
    await (await fetch(site.origin)).arrayBuffer();
    const [taken, streamed] = [await fetch(site.origin), await fetch(site.origin)];
    // What is let in without a reader has come by now, and the rest waits.
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(Buffer.compare(Buffer.from(await taken.arrayBuffer()), body)).toBe(0);
    expect(Buffer.compare(Buffer.from(await readStream(streamed), "base64"), body)).toBe(0);
  });

  it("is whole in however many pieces it comes", async () => {
    const words = Array.from({ length: 5_000 }, (_, index) => `${index} `);
    await using site = await localSite(HERE, (_request, response) => {
      for (const word of words) response.write(word);
      response.end();
    });
    const { fetch } = politely({ hosts: { [HERE]: { concurrency: 1 } } });
    const taken = await fetch(site.origin);
    expect(await taken.text()).toBe(words.join(""));
    const streamed = await fetch(site.origin);
    // All of it is kept by now.
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(Buffer.from(await readStream(streamed), "base64").toString()).toBe(words.join(""));
  });

  it.each([{ encoding: undefined }, { encoding: "gzip" }])(
    "keeps no place from its repetition: %o",
    async ({ encoding }) => {
      // More than is let in without a reader, also when it is compressed.
      const long = randomBytes(4_000_000);
      await using site = await localSite(HERE, (_request, response, index) => {
        if (encoding !== undefined) response.setHeader("content-encoding", encoding);
        response.statusCode = index === 1 ? 503 : 200;
        const body = index === 1 ? long : Buffer.from("page");
        response.end(encoding === undefined ? body : gzipSync(body));
      });
      const limits = { concurrency: 1, backoff: "none" } as const;
      const http = { retry: { attempts: 2, delay: "10ms" } } as const;
      const { fetch } = politely({ hosts: { [HERE]: limits }, http });
      for (const seen of [1, 3]) {
        expect(await (await fetch(site.origin)).text()).toBe("page");
        expect(site.seen).toHaveLength(seen);
      }
    },
  );

  it("frees its place although it is compressed and nobody reads it", async () => {
    await using site = await localSite(HERE, (_request, response) => {
      response.setHeader("content-encoding", "gzip");
      response.end(gzipSync(randomBytes(600_000)));
    });
    const { fetch } = politely({ hosts: { [HERE]: { concurrency: 1 } } });
    for (let index = 0; index < 3; index++) expect((await fetch(site.origin)).status).toBe(200);
  });

  it("comes after early hints", async () => {
    await using site = await localSite(HERE, (_request, response) => {
      response.writeEarlyHints({ link: "</style.css>; rel=preload", "content-encoding": "gzip" });
      response.end("page");
    });
    const { fetch } = politely({ hosts: { [HERE]: { concurrency: 1 } } });
    for (let index = 0; index < 2; index++) expect(await (await fetch(site.origin)).text()).toBe("page");
  });

  it.each([
    ["a sink that fails by a timeout of its own", (body: ReadableStream, late: Error) => body.pipeTo(failing(late))],
    ["a cancel whose reason is a timeout", (body: ReadableStream, late: Error) => body.cancel(late)],
  ])("says nothing about the site by %s", async (_what, end) => {
    await using site = await localSite(HERE, (_request, response) => void response.write("endless"));
    const limiter = politely({ hosts: { [HERE]: { concurrency: 1 } } });
    const late = Object.assign(new Error("the database is slow"), { name: "TimeoutError", code: "ETIMEDOUT" });
    for (let index = 0; index < 2; index++) {
      const { body } = await limiter.fetch(site.origin);
      await fateOf(() => body && end(body, late));
      await turn();
      expect(limiter.stats(HERE)).toMatchObject({ inFlight: 0, cooldownMs: 0 });
    }
  });

  it("has copies, whose bodies keep their places, also of a limiter in front of ours", async () => {
    let finish = (): void => undefined;
    await using site = await localSite(HERE, (_request, response) => {
      response.write("hel");
      finish = () => response.end("lo");
    });
    const inner = politely({ hosts: { [HERE]: { concurrency: 1 } } });
    const outer = limit({ concurrency: 1 }, { fetch: (input, init) => inner.fetch(input, init) });
    for (let index = 0; index < 2; index++) {
      const response = await outer.fetch(site.origin);
      const copy = response.clone();
      expect(copy.clone().body).toBeInstanceOf(ReadableStream);
      await turn();
      expect([outer.stats().inFlight, inner.stats(HERE)?.inFlight]).toEqual([1, 1]);
      finish();
      expect([await copy.text(), await response.text()]).toEqual(["hello", "hello"]);
      expect([outer.stats().inFlight, inner.stats(HERE)?.inFlight]).toEqual([0, 0]);
    }
  });

  it("goes through the dispatcher that the caller names, also through one that only pretends", async () => {
    const agent = new MockAgent();
    agent.disableNetConnect();
    const answers = agent.get("http://site.test");
    const { fetch } = politely({ default: { concurrency: 1 } });
    for (const sent of ["one", "two"]) {
      answers.intercept({ path: "/", method: "POST", body: sent }).reply(200, `got ${sent}`);
      const init = { method: "POST", body: sent, dispatcher: agent };
      expect(await (await fetch("http://site.test/", init as RequestInit)).text()).toBe(`got ${sent}`);
    }
  });
});

describe("a global fetch that somebody has put around Node's", () => {
  const nodes = globalThis.fetch;
  afterEach(() => {
    globalThis.fetch = nodes;
  });

  /** What a caller reads through the wrapper, and through us and the wrapper. */
  async function readBoth(path: string, wrapper: typeof fetch): Promise<string[]> {
    await using site = await localSite(HERE, ({ url }, response) => {
      response.statusCode = url === "/bad" ? 500 : 200;
      response.end(url === "/bad" ? "an error" : "page");
    });
    await (await nodes(site.origin)).text();
    globalThis.fetch = wrapper;
    const polite = politely({ hosts: { [HERE]: { concurrency: 2, backoff: "none" } } });
    const answers = [await wrapper(site.origin + path), await polite.fetch(site.origin + path)];
    return await Promise.all(answers.map((answer) => answer.text()));
  }

  it("may answer by itself", async () => {
    const wrapper: typeof fetch = async (input, init) =>
      (await nodes(input, init)).ok ? nodes(input, init) : new Response("kept from before");
    expect(await readBoth("/bad", wrapper)).toEqual(["kept from before", "kept from before"]);
  });

  it("may read a copy later", async () => {
    const copies: Response[] = [];
    const wrapper: typeof fetch = async (input, init) => {
      const answer = await nodes(input, init);
      copies.push(answer.clone());
      return answer;
    };
    expect(await readBoth("/", wrapper)).toEqual(["page", "page"]);
    expect(await Promise.all(copies.map((copy) => copy.text()))).toEqual(["page", "page"]);
  });

  it("may ask for something else beside", async () => {
    const wrapper: typeof fetch = async (input, init) => {
      const answer = await nodes(input, init);
      await nodes(new URL("/bad", input as string), init);
      return answer;
    };
    expect(await readBoth("/", wrapper)).toEqual(["page", "page"]);
  });

  it("may choose the dispatcher", async () => {
    const agent = new MockAgent();
    const wrapper: typeof fetch = (input, init) => nodes(input, { dispatcher: agent, ...init } as RequestInit);
    await using site = await localSite(HERE, (_request, response) => response.end("page"));
    agent.get(site.origin).intercept({ path: "/" }).reply(200, "pretended");
    globalThis.fetch = wrapper;
    const polite = politely({ hosts: { [HERE]: { concurrency: 2 } } });
    expect(await (await polite.fetch(site.origin)).text()).toBe("pretended");
  });
});

function failing(error: Error): WritableStream {
  return new WritableStream({
    write() {
      throw error;
    },
  });
}
