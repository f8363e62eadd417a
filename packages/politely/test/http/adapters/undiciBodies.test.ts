import "./register/builtIn.js";
import { Agent, type Dispatcher, request, fetch as undiciFetch } from "undici";
import { describe, expect, it } from "vitest";
import { politeInterceptor } from "../../../src/http/undici/index.js";
import { politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { localSite } from "../fetch/localSite.js";
import { builtInAgent, builtInFetch } from "./register/builtIn.js";

const HERE = "127.0.0.2";
const UNREAD_MS = 5_000;
const MIB = 1_048_576;
const COUNT = 20;

interface Body {
  arrayBuffer(): Promise<ArrayBuffer>;
}

const ways: Record<string, [() => Agent, (url: string, dispatcher: Dispatcher) => Promise<Body>]> = {
  request: [() => new Agent(), async (url, dispatcher) => (await request(url, { dispatcher })).body],
  "undici's fetch": [() => new Agent(), (url, dispatcher) => undiciFetch(url, { dispatcher })],
  "Node's fetch": [builtInAgent, (url, dispatcher) => builtInFetch(url, { dispatcher })],
};

/** Waits for real sockets, at most five seconds. */
async function until(isTrue: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000 && !isTrue(); turn++) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(isTrue()).toBe(true);
}

describe("answers whose bodies are read later", () => {
  it.each(Object.entries(ways))(
    "get through by themselves when they are small: %s",
    async (_name, [makeAgent, ask]) => {
      await using site = await localSite(HERE, (_request, response) => response.end("x".repeat(10_000)));
      const polite = politely({ hosts: { [HERE]: { concurrency: 4 } } });
      const agent = makeAgent();
      const dispatcher = agent.compose(politeInterceptor(polite));
      const bodies = await Promise.all(Array.from({ length: COUNT }, () => ask(site.origin, dispatcher)));
      expect(site.peak).toBeLessThanOrEqual(4);
      await until(() => polite.stats(HERE)?.inFlight === 0);
      const sizes = await Promise.all(bodies.map(async (body) => (await body.arrayBuffer()).byteLength));
      expect(sizes).toEqual(Array.from({ length: COUNT }, () => 10_000));
      await agent.close();
    },
  );

  it.each(Object.entries(ways))(
    "get through after a while when they are large: %s",
    async (_name, [makeAgent, ask]) => {
      await using site = await localSite(HERE, (_request, response) => response.end(Buffer.alloc(4 * MIB, 7)));
      const clock = new VirtualClock();
      const polite = politely({ hosts: { [HERE]: { concurrency: 2 } } }, { clock });
      const agent = makeAgent();
      const dispatcher = agent.compose(politeInterceptor(polite));
      const asked = Array.from({ length: 6 }, () => ask(site.origin, dispatcher));
      for (let round = 1; round <= 3; round++) {
        await until(() => site.seen.length === 2 * round);
        await Promise.all(asked.slice(2 * round - 2, 2 * round));
        expect(polite.stats(HERE)).toMatchObject({ inFlight: 2, waiting: 6 - 2 * round });
        // The sockets need a moment until nothing more is taken from them.
        await new Promise((resolve) => setTimeout(resolve, 50));
        await clock.advance(UNREAD_MS);
      }
      const bodies = await Promise.all(asked);
      expect(polite.stats(HERE)).toMatchObject({ inFlight: 0, released: 6 });
      const sizes = await Promise.all(bodies.map(async (body) => (await body.arrayBuffer()).byteLength));
      expect(sizes).toEqual(Array.from({ length: 6 }, () => 4 * MIB));
      await agent.close();
    },
  );

  it("are not taken from the site faster than they are read", async () => {
    let written = 0;
    await using site = await localSite(HERE, (_request, response) => {
      const write = (): void => {
        while (written < 256 && response.write(Buffer.alloc(MIB))) written += 1;
        written += 1;
        if (written >= 256) response.end();
        else response.once("drain", write);
      };
      write();
    });
    const agent = new Agent();
    const dispatcher = agent.compose(politeInterceptor(politely({ hosts: { [HERE]: { concurrency: 1 } } })));
    const { body } = await request(site.origin, { dispatcher });
    let before = -1;
    await until(() => {
      const isStill = written === before;
      before = written;
      return isStill;
    });
    // Buffers of sockets hold some; without backpressure all 256 MiB would have been written.
    expect(written).toBeLessThan(64);
    body.on("error", () => undefined).destroy();
    await agent.destroy();
  });
});
