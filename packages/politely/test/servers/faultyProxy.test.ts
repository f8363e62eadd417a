import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../fleet/until.js";
import { type FaultyProxy, faultyProxy } from "./faultyProxy.js";
import { startRedis } from "./redis.js";
import { askRedis } from "./redisProcess.js";

let echo: Server;
let proxy: FaultyProxy;
let seen: string;
const clients: Socket[] = [];

beforeEach(async () => {
  seen = "";
  echo = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (piece) => {
      if (seen.length < 1_000) seen += piece.toString();
    });
    socket.pipe(socket);
  }).listen(0, "127.0.0.1");
  await once(echo, "listening");
  proxy = await faultyProxy({ host: "127.0.0.1", port: (echo.address() as AddressInfo).port });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await proxy.stop();
  echo.close();
});

/** A connection that collects what it gets, and how it ended. */
async function open() {
  const socket = connect({ host: proxy.host, port: proxy.port, allowHalfOpen: true });
  clients.push(socket);
  const client = { socket, got: "", error: "" };
  socket.on("data", (piece: Buffer) => (client.got += piece.toString()));
  socket.on("error", (error: NodeJS.ErrnoException) => (client.error = error.code ?? ""));
  await once(socket, "connect");
  return client;
}

function soon(what: string, isSo: () => boolean): Promise<void> {
  return until(what, 5_000, isSo);
}

describe("a proxy without faults", () => {
  it("carries megabytes in both directions, in order, and the end of each", async () => {
    const { socket } = await open();
    socket.removeAllListeners("data");
    const sent = Buffer.from(Array.from({ length: 1_000_000 }, (_, index) => index % 251)).toString("base64");
    const received = buffer(socket);
    socket.end(sent.repeat(4));
    expect((await received).equals(Buffer.from(sent.repeat(4)))).toBe(true);
    await soon("the proxy has no connection left", () => proxy.connectionCount === 0);
  });

  it("resets a client whose server is away", async () => {
    echo.close();
    const client = await open();
    await soon("the client is reset", () => client.error === "ECONNRESET");
    expect(proxy.connectionCount).toBe(0);
  });

  it("listens no more once it is stopped, and its connections are reset", async () => {
    const client = await open();
    await soon("the proxy has the connection", () => proxy.connectionCount === 1);
    await proxy.stop();
    await soon("the client is reset", () => client.error === "ECONNRESET");
    await expect(open()).rejects.toThrow("ECONNREFUSED");
    await proxy.stop();
    await expect(proxy.heal()).rejects.toThrow("was stopped");
  });
});

describe("a proxy with a fault", () => {
  it("delays each direction, and keeps the order when the delay shrinks", async () => {
    const client = await open();
    proxy.delay(40);
    const fromMs = performance.now();
    client.socket.write("a");
    await soon("the echo of a came back", () => client.got === "a");
    expect(performance.now() - fromMs).toBeGreaterThanOrEqual(79);
    client.socket.write("b");
    await soon("b is at the server", () => seen === "ab");
    proxy.delay(0);
    client.socket.write("c");
    await soon("both came back", () => client.got.length === 3);
    expect(client.got).toBe("abc");
  });

  it("carries much through a delay without holding it all", async () => {
    const { socket } = await open();
    socket.removeAllListeners("data");
    proxy.delay(1);
    const sent = Buffer.alloc(3_000_000, "polite ");
    const received = buffer(socket);
    socket.end(sent);
    expect((await received).equals(sent)).toBe(true);
  });

  it("that is cut resets and refuses, and accepts again on the same port once healed", async () => {
    const client = await open();
    client.socket.write("a");
    await soon("the echo came back", () => client.got === "a");
    await proxy.cut();
    await soon("the client is reset", () => client.error === "ECONNRESET");
    await expect(open()).rejects.toThrow("ECONNREFUSED");
    await proxy.cut();
    await proxy.heal();
    const next = await open();
    next.socket.write("b");
    await soon("the echo came back", () => next.got === "b");
  });

  it("that is half open swallows both directions and keeps connections, until it is healed", async () => {
    const [idle, busy] = [await open(), await open()];
    busy.socket.write("a");
    await soon("the echo came back", () => busy.got === "a");
    proxy.halfOpen();
    busy.socket.write("lost");
    const late = await open();
    late.socket.write("late");
    await soon("all is swallowed", () => proxy.lostBytes === 8);
    expect([seen, busy.got, late.got, busy.error, late.error]).toEqual(["a", "a", "", "", ""]);
    expect(proxy.connectionCount).toBe(3);

    await proxy.heal();
    await soon("those that lost something are reset", () => `${busy.error} ${late.error}` === "ECONNRESET ECONNRESET");
    idle.socket.write("b");
    await soon("the idle one goes on", () => idle.got === "b");
    expect(seen).toBe("ab");
  });

  it("that is half open hides that a client has gone", async () => {
    const arrived = once(echo, "connection");
    const client = await open();
    const [server] = (await arrived) as [Socket];
    let hasClosed = false;
    server.once("close", () => (hasClosed = true));
    proxy.halfOpen();
    client.socket.destroy();
    const later = await open();
    later.socket.write("after");
    await soon("what came after the end is swallowed", () => proxy.lostBytes === 5);
    // The server has had time to hear of the end, had it been passed on.
    const direct = connect((echo.address() as AddressInfo).port, "127.0.0.1");
    clients.push(direct);
    direct.write("x");
    await once(direct, "data");
    expect(hasClosed).toBe(false);
    await proxy.heal();
    await soon("the server hears of it", () => hasClosed);
  });

  it("that swallows replies lets requests through on connections that stay", async () => {
    const client = await open();
    proxy.swallowReplies();
    client.socket.write("a");
    await soon("the reply is swallowed", () => proxy.lostBytes === 1);
    client.socket.write("b");
    await soon("the next too", () => proxy.lostBytes === 2);
    expect([seen, client.got, client.error]).toEqual(["ab", "", ""]);
    await proxy.heal();
    await soon("the connection is reset", () => client.error === "ECONNRESET");
  });

  it("that swallows one reply resets its connection, and only that", async () => {
    const [one, two] = [await open(), await open()];
    proxy.swallowReplies(1);
    one.socket.write("a");
    await soon("the connection is reset", () => one.error === "ECONNRESET");
    two.socket.write("b");
    await soon("the other has its reply", () => two.got === "b");
    expect([seen, one.got, proxy.connectionCount]).toEqual(["ab", "", 1]);
  });

  it.each([
    ["a delay below 0", () => proxy.delay(-1)],
    ["a delay that is no number", () => proxy.delay(Number.NaN)],
    ["a delay above a minute", () => proxy.delay(60_001)],
    ["no replies to swallow", () => proxy.swallowReplies(0)],
  ])("refuses %s", (_title, wrong) => {
    expect(wrong).toThrow(RangeError);
  });
});

describe("Redis behind a faulty proxy", () => {
  it("has counted what the client never heard of", async () => {
    await using server = await startRedis({ args: [] });
    await using before = await faultyProxy(server);
    const client = new Redis({ host: before.host, port: before.port, retryStrategy: () => null });
    client.on("error", () => {});
    expect(await client.incr("count")).toBe(1);
    before.swallowReplies(1);
    await expect(client.incr("count")).rejects.toThrow();
    expect(await askRedis(server.port, "GET", "count")).toBe("2");
  });
});
