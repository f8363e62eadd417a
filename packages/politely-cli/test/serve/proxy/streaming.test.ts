import { createHash } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { selfSigned, startOrigin } from "./origin.js";
import { curl, eventually, isSettled, raw, rawConnection, startProxy } from "./place.js";

const MIB = 1024 * 1024;
const chunk = Buffer.alloc(MIB, "politely ");
const wholeMib = 50;
/** What the kernel may hold of a connection that nobody reads, twice: to the proxy and from it. */
const kernelMib = 30;
const limits = { hosts: { "127.0.0.1": { concurrency: 4 } } };

/** 50 MiB, one at a time, as fast as they are taken. */
async function* body(count: { mib: number }): AsyncGenerator<Buffer> {
  while (count.mib < wholeMib) {
    count.mib += 1;
    yield chunk;
  }
}

function digestOfAll(): string {
  const hash = createHash("sha256");
  for (let index = 0; index < wholeMib; index++) hash.update(chunk);
  return hash.digest("hex");
}

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc") as () => void;

/** Twice: buffers found to be garbage are freed beside the program, and surely gone when the next collection begins. */
function collect(): void {
  gc();
  gc();
}

/** Follows the most that buffers in use take, beyond what they took before: what is garbage is collected before each look. */
function watchBuffers(): { peakMib(): number } {
  collect();
  const { arrayBuffers } = process.memoryUsage();
  let peak = arrayBuffers;
  const timer = setInterval(() => {
    collect();
    peak = Math.max(peak, process.memoryUsage().arrayBuffers);
  }, 60);
  return {
    peakMib() {
      clearInterval(timer);
      return (peak - arrayBuffers) / MIB;
    },
  };
}

it("passes a body of 50 MiB on as it is read, and takes no more from the site than that", async () => {
  const sent = { mib: 0 };
  await using site = await startOrigin((_, response) => {
    response.writeHead(200, { "content-length": wholeMib * MIB });
    pipeline(body(sent), response).catch(() => undefined);
  });
  await using place = await startProxy(limits);
  const asked = request({ host: "127.0.0.1", port: place.port, path: `${site.url}/`, headers: { host: "x" } }).end();
  const [answer] = (await once(asked, "response")) as [import("node:http").IncomingMessage];
  // Nobody reads: after a while nothing moves any more, and most of the body is still at the site.
  let before = -1;
  while (before !== sent.mib) {
    before = sent.mib;
    await delay(300);
  }
  expect(sent.mib).toBeLessThan(kernelMib);
  expect(place.limiter.stats("127.0.0.1")?.inFlight).toBe(1);
  const buffers = watchBuffers();
  const hash = createHash("sha256");
  for await (const piece of answer) hash.update(piece as Buffer);
  expect(hash.digest("hex")).toBe(digestOfAll());
  expect(buffers.peakMib()).toBeLessThan(8);
  await eventually(() => isSettled(place.limiter), "the place is free");
});

it("passes an upload of 50 MiB on as the site reads it, after it has been told to go on", async () => {
  const hash = createHash("sha256");
  await using site = await startOrigin((incoming, response, arrival) => {
    incoming.on("data", (piece: Buffer) => {
      arrival.bodyBytes += piece.length;
      hash.update(piece);
    });
    incoming.once("end", () => response.end("thanks"));
  });
  await using place = await startProxy(limits);
  const asked = request({
    host: "127.0.0.1",
    port: place.port,
    path: `${site.url}/`,
    method: "POST",
    headers: { host: "x", expect: "100-continue", "transfer-encoding": "chunked" },
  });
  asked.flushHeaders();
  await once(asked, "continue");
  const buffers = watchBuffers();
  const answered = once(asked, "response") as Promise<[import("node:http").IncomingMessage]>;
  await pipeline(body({ mib: 0 }), asked);
  const [answer] = await answered;
  expect(answer.statusCode).toBe(200);
  expect(site.seen[0].bodyBytes).toBe(wholeMib * MIB);
  expect(hash.digest("hex")).toBe(digestOfAll());
  expect(site.seen[0].headers.expect).toBeUndefined();
  expect(buffers.peakMib()).toBeLessThan(8);
});

it("refuses a body that is too large: at once where its length is told, else where it grows too long", async () => {
  await using site = await startOrigin((incoming, response) => {
    incoming.resume().once("end", () => response.end("whole"));
  });
  await using place = await startProxy(limits, { maxBodyBytes: 1_000 });
  const told = `POST ${site.url}/told HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n`;
  expect(await raw(place.port, told)).toMatch(/^HTTP\/1\.1 413 [\s\S]*at most 1000 bytes/);
  expect(site.seen).toHaveLength(0);
  const piece = `400\r\n${"x".repeat(1_024)}\r\n`;
  const grows = `POST ${site.url}/grows HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${piece}`;
  expect(await raw(place.port, grows)).toMatch(/^HTTP\/1\.1 413 /);
  const { stdout } = await curl(["-x", place.url, "-d", "x".repeat(1_000), `${site.url}/fits`]);
  expect(stdout).toBe("whole");
  expect(isSettled(place.limiter)).toBe(true);
});

it("blames nobody when a client breaks off its upload", async () => {
  await using site = await startOrigin((incoming) => void incoming.resume());
  await using place = await startProxy({ hosts: { "127.0.0.1": { backoff: "exponential" } } });
  const socket = await rawConnection(
    place.port,
    `POST ${site.url}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc`,
  );
  await site.until(1);
  socket.destroy();
  await eventually(() => isSettled(place.limiter), "the place is free");
  expect(place.events.filter(({ type }) => type === "cooldown")).toEqual([]);
});

it("blames nobody when a client is silent in the middle of its upload, and answers 408", async () => {
  await using site = await startOrigin((incoming) => void incoming.resume());
  await using place = await startProxy({ hosts: { "127.0.0.1": { backoff: "exponential" } } }, { timeoutMs: 300 });
  const post = `POST ${site.url}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc`;
  expect(await raw(place.port, post, 5_000)).toMatch(/^HTTP\/1\.1 408 /);
  expect(place.events.filter(({ type }) => type === "cooldown")).toEqual([]);
  expect(isSettled(place.limiter)).toBe(true);
});

it("passes on what a site answers before it has read the body", async () => {
  await using site = await startOrigin((_, response) => {
    response.writeHead(403, { connection: "close" }).end("not you");
  });
  await using place = await startProxy(limits);
  const post = `POST ${site.url}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc`;
  expect(await raw(place.port, post, 5_000)).toMatch(/^HTTP\/1\.1 403 [\s\S]*not you/);
  await eventually(() => isSettled(place.limiter), "the place is free");
});

it("breaks an answer off that the site breaks off, so that nobody takes it for whole", async () => {
  await using site = await startOrigin((_, response) => {
    response.writeHead(200).write("half", () => response.destroy());
  });
  await using place = await startProxy(limits);
  const { code, stdout } = await curl(["-x", place.url, `${site.url}/`]);
  expect(code).not.toBe(0);
  expect(stdout).toBe("half");
  await eventually(() => isSettled(place.limiter), "the place is free");
});

it("keeps one start for a request whose kept connection was closed under it, and one for its repetition", async () => {
  await using site = await startOrigin((incoming, response) => {
    // The second request on a connection finds it closed.
    const used = (incoming.socket as { uses?: number }).uses ?? 0;
    (incoming.socket as { uses?: number }).uses = used + 1;
    if (used === 1) incoming.socket.destroy();
    else response.end("fine");
  });
  await using place = await startProxy({ hosts: { "127.0.0.1": { backoff: "exponential" } } });
  for (let index = 0; index < 2; index++) {
    expect((await curl(["-x", place.url, `${site.url}/${index}`])).stdout).toBe("fine");
  }
  expect(site.seen.map(({ path }) => path)).toEqual(["/0", "/1", "/1"]);
  expect(place.limiter.stats("127.0.0.1")).toMatchObject({ granted: 3, inFlight: 0 });
  expect(place.events.filter(({ type }) => type === "cooldown")).toEqual([]);
});

it("opens a tunnel to https, keeps its place while it is open, and passes bytes both ways", async () => {
  const certificate = selfSigned();
  await using site = await startOrigin(undefined, certificate);
  await using place = await startProxy(
    { hosts: { "127.0.0.1": { concurrency: 1 } } },
    { connectPorts: [443, site.port] },
  );
  const { stdout } = await curl(["-x", place.url, "--proxy-header", "X-Mine: 1", "-k", `${site.url}/inside`]);
  expect(stdout).toBe("page /inside");
  expect(site.seen[0].headers["x-mine"]).toBeUndefined();
  await eventually(() => isSettled(place.limiter), "the first tunnel is over");

  const first = await rawConnection(place.port, `CONNECT 127.0.0.1:${site.port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const [opened] = (await once(first, "data")) as [Buffer];
  expect(opened.toString()).toMatch(/^HTTP\/1\.1 200 Connection Established\r\nPolitely-Waited-Ms: \d+\r\n\r\n$/);
  const second = await rawConnection(place.port, `CONNECT 127.0.0.1:${site.port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await eventually(() => place.proxy.waitingCount === 1, "the second waits");
  first.destroy();
  const [next] = (await once(second, "data")) as [Buffer];
  expect(next.toString()).toMatch(/^HTTP\/1\.1 200 /);
  second.destroy();
  await eventually(() => isSettled(place.limiter), "both are over");
});

it("closes a tunnel in which nothing moves, and one whose site does not answer costs nothing but a sentence", async () => {
  await using site = await startOrigin();
  await using place = await startProxy(
    { hosts: { "127.0.0.1": { concurrency: 1 } } },
    {
      connectPorts: [site.port, 1],
      tunnelIdleMs: 200,
    },
  );
  const idle = connect({ host: "127.0.0.1", port: place.port });
  idle.write(`CONNECT 127.0.0.1:${site.port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  idle.resume();
  await once(idle, "close");
  const answer = await raw(place.port, "CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(answer).toMatch(/^HTTP\/1\.1 502 [\s\S]*error=connection_refused/);
  expect(isSettled(place.limiter)).toBe(true);
});
