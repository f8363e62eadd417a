import "./register/builtIn.js";
import { once } from "node:events";
import { createServer } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { Agent, Client, type Dispatcher, request, fetch as undiciFetch } from "undici";
import { describe, expect, it } from "vitest";
import { politeInterceptor } from "../../../src/http/undici/index.js";
import { type PolicyInput, politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { localSite } from "../fetch/localSite.js";
import { builtInAgent, builtInFetch } from "./register/builtIn.js";

const HERE = "127.0.0.2";
const GAP_MS = 10_000;

function paced(policy: PolicyInput = { hosts: { [HERE]: { minDelay: GAP_MS } } }, agent: Dispatcher = new Agent()) {
  const clock = new VirtualClock();
  const polite = politely(policy, { clock });
  return { clock, polite, agent, dispatcher: agent.compose(politeInterceptor(polite)) };
}

/** Every way to ask that can be aborted, and the undici it goes through. */
const ways: Record<
  string,
  [() => Agent, (url: string, dispatcher: Dispatcher, signal: AbortSignal) => Promise<unknown>]
> = {
  request: [() => new Agent(), (url, dispatcher, signal) => request(url, { dispatcher, signal })],
  stream: [
    () => new Agent(),
    (url, dispatcher, signal) =>
      dispatcher.stream({ origin: new URL(url).origin, path: "/", method: "GET", signal }, () => new PassThrough()),
  ],
  "undici's fetch": [() => new Agent(), (url, dispatcher, signal) => undiciFetch(url, { dispatcher, signal })],
  "Node's fetch": [builtInAgent, (url, dispatcher, signal) => builtInFetch(url, { dispatcher, signal })],
};

/** Waits for real sockets, at most five seconds. */
async function until(isTrue: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000 && !isTrue(); turn++) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(isTrue()).toBe(true);
}

describe("a request that is aborted", () => {
  it.each(Object.entries(ways))("while it waits leaves the queue at once and takes nothing: %s", async (_name, way) => {
    const [makeAgent, ask] = way;
    await using site = await localSite(HERE, (_request, response) => response.end("page"));
    const { clock, polite, agent, dispatcher } = paced(undefined, makeAgent());
    await ask(site.origin, dispatcher, new AbortController().signal);
    const controller = new AbortController();
    const reason = new Error("changed my mind");
    const waiting = ask(site.origin, dispatcher, controller.signal);
    const third = ask(site.origin, dispatcher, new AbortController().signal);
    await until(() => polite.stats(HERE)?.waiting === 2);
    controller.abort(reason);
    expect(polite.stats(HERE)).toMatchObject({ waiting: 1, cancelledRequests: 1 });
    await expect(waiting).rejects.toBe(reason);
    await clock.advance(GAP_MS);
    await third;
    expect(site.seen.length).toBe(2);
    await agent.close();
  });

  it.each(Object.entries(ways))("before it is asked for takes nothing: %s", async (_name, way) => {
    const [makeAgent, ask] = way;
    await using site = await localSite(HERE, (_request, response) => response.end("page"));
    const { polite, agent, dispatcher } = paced(undefined, makeAgent());
    await expect(ask(site.origin, dispatcher, AbortSignal.abort(new Error("no")))).rejects.toThrow(/^no$|aborted/);
    expect(polite.stats(HERE)?.asked ?? 0).toBe(0);
    await agent.close();
  });

  it.each(Object.entries(ways))(
    "in flight frees its place and holds nothing against the site: %s",
    async (_name, way) => {
      const [makeAgent, ask] = way;
      await using site = await localSite(HERE, () => undefined);
      const { polite, agent, dispatcher } = paced({ hosts: { [HERE]: { concurrency: 1 } } }, makeAgent());
      const controller = new AbortController();
      const asked = ask(site.origin, dispatcher, controller.signal);
      await until(() => site.seen.length === 1);
      controller.abort(new Error("enough"));
      await expect(asked).rejects.toThrow("enough");
      expect(polite.stats(HERE)).toMatchObject({ inFlight: 0, cooldownMs: 0, totalRequests: 1 });
      await agent.destroy();
    },
  );

  it("by its own timeout, on a connection or before there is one, counts as no answer in time", async () => {
    await using site = await localSite(HERE, () => undefined);
    const client = new Client(site.origin);
    const clock = new VirtualClock();
    const polite = politely({ hosts: { [HERE]: { concurrency: 2 } } }, { clock });
    const dispatcher = client.compose(politeInterceptor(polite, { origin: site.origin }));
    const controllers = [new AbortController(), new AbortController()];
    const asked = controllers.map(({ signal }) => dispatcher.request({ path: "/", method: "GET", signal }));
    await until(() => site.seen.length === 1 && polite.stats(HERE)?.inFlight === 2);
    for (const [index, controller] of controllers.entries()) {
      polite.reset(HERE, "all");
      controller.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
      await expect(asked[index]).rejects.toThrow(/timeout/);
      expect(polite.stats(HERE)).toMatchObject({ inFlight: 1 - index, cooldownMs: 5_000 });
    }
    await client.destroy();
  });

  it("in the middle of its body frees its place", async () => {
    await using site = await localSite(HERE, (_request, response) => void response.write("first"));
    const { polite, agent, dispatcher } = paced({ hosts: { [HERE]: { concurrency: 1 } } });
    const { body } = await request(site.origin, { dispatcher });
    body.on("error", () => undefined).destroy();
    await until(() => polite.stats(HERE)?.inFlight === 0);
    const response = await undiciFetch(site.origin, { dispatcher });
    await response.body?.cancel();
    await until(() => polite.stats(HERE)?.inFlight === 0);
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, cooldownMs: 0 });
    await agent.destroy();
  });

  it("before undici has a connection for it ends at once and gives back what it took", async () => {
    await using site = await localSite(HERE, (request, response) => {
      if (request.url !== "/slow") response.end("page");
    });
    const client = new Client(site.origin);
    const polite = politely({ hosts: { [HERE]: { window: "2/h", concurrency: 2 } } });
    const dispatcher = client.compose(politeInterceptor(polite, { origin: site.origin }));
    const held = new AbortController();
    const first = dispatcher.request({ path: "/slow", method: "GET", signal: held.signal });
    await until(() => site.seen.length === 1);
    const controller = new AbortController();
    const second = dispatcher.request({ path: "/b", method: "GET", signal: controller.signal });
    // A whole turn, so that undici has it and keeps it behind the first.
    await new Promise((resolve) => setImmediate(resolve));
    expect(polite.stats(HERE)?.inFlight).toBe(2);
    controller.abort(new Error("too slow"));
    await expect(second).rejects.toThrow("too slow");
    expect([client.stats.pending, polite.stats(HERE)?.inFlight, polite.stats(HERE)?.window?.remaining]).toEqual([
      1, 1, 1,
    ]);
    held.abort(new Error("done"));
    await expect(first).rejects.toThrow("done");
    const { body } = await dispatcher.request({ path: "/c", method: "GET" });
    expect(await body.text()).toBe("page");
    expect(site.seen.map(({ url }) => url)).toEqual(["/slow", "/c"]);
    await client.close();
  });

  it("as a pipeline that is destroyed while it waits leaves the queue", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("page"));
    const { polite, agent, dispatcher } = paced();
    await request(site.origin, { dispatcher });
    const duplex = dispatcher.pipeline({ origin: site.origin, path: "/", method: "PUT" }, ({ body }) => body);
    await until(() => polite.stats(HERE)?.waiting === 1);
    const failed = once(duplex, "error");
    duplex.destroy();
    expect(polite.stats(HERE)).toMatchObject({ waiting: 0, cancelledRequests: 1 });
    expect(String((await failed)[0])).toMatch(/aborted/i);
    await agent.close();
  });
});

describe("a request that fails", () => {
  it("in the limiter has the limiter's error: the request itself, and the cause of fetch", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("page"));
    const { agent, dispatcher } = paced({ hosts: { [HERE]: { minDelay: GAP_MS, maxWait: 100 } } });
    await request(site.origin, { dispatcher });
    const expected = { name: "DeadlineError", code: "POLITELY_DEADLINE", waitMs: GAP_MS };
    await expect(request(site.origin, { dispatcher })).rejects.toMatchObject(expected);
    await expect(undiciFetch(site.origin, { dispatcher })).rejects.toMatchObject({ cause: expected });
    await agent.close();
  });

  it("because the limiter was closed while it waited says so", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("page"));
    const { polite, agent, dispatcher } = paced();
    await request(site.origin, { dispatcher });
    const waiting = request(site.origin, { dispatcher });
    await until(() => polite.stats(HERE)?.waiting === 1);
    await Promise.all([expect(waiting).rejects.toMatchObject({ code: "POLITELY_CLOSED" }), polite.close()]);
    await agent.close();
  });

  it("on the network is a server error of its site, and has undici's error", async () => {
    const probe = createServer().listen(0, HERE);
    await once(probe, "listening");
    const { port } = probe.address() as { port: number };
    probe.close();
    await once(probe, "close");
    const { polite, agent, dispatcher } = paced();
    const refused = { code: "ECONNREFUSED" };
    await expect(request(`http://${HERE}:${port}/`, { dispatcher })).rejects.toMatchObject(refused);
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0, cooldownMs: 5_000 });
    await agent.close();
  });

  it("because its dispatcher is closed or its arguments are wrong gives back what it took", async () => {
    const { polite, agent, dispatcher } = paced({ hosts: { [HERE]: { window: "1/h" } } });
    const site = `http://${HERE}:9`;
    const wrong = dispatcher.request({ origin: site, path: "/", method: "G E T" });
    await expect(wrong).rejects.toMatchObject({ code: "UND_ERR_INVALID_ARG" });
    await agent.close();
    await expect(request(site, { dispatcher })).rejects.toMatchObject({ code: "UND_ERR_DESTROYED" });
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0, cooldownMs: 0, window: { calls: 0 } });
  });

  it("because the stream it sends fails while it waits leaves the queue, and the process lives on", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("page"));
    const { polite, agent, dispatcher } = paced();
    await request(site.origin, { dispatcher });
    const body = new Readable({ read: () => undefined });
    const sent = request(site.origin, { dispatcher, method: "POST", body });
    await until(() => polite.stats(HERE)?.waiting === 1);
    body.destroy(new Error("disk is gone"));
    await expect(sent).rejects.toThrow("disk is gone");
    expect(polite.stats(HERE)).toMatchObject({ waiting: 0, cancelledRequests: 1 });
    await agent.close();
  });
});
