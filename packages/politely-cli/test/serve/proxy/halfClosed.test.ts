import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import { expect, it } from "vitest";
import { eventually, isSettled, type ProxyPlace, startProxy } from "./place.js";

const limits = { hosts: { "127.0.0.1": { concurrency: 4 } } };
/** Small, so that a connection which still holds one takes more. */
const piece = Buffer.alloc(1_024, "x");
/** Far more than two kernels hold of a connection that nobody reads. */
const MOST_PIECES = 64 * 1_024;

/** The four ends of a tunnel. */
interface Tunnel {
  readonly client: Socket;
  readonly site: Socket;
  /** The proxy's own. */
  readonly toClient: Socket;
  readonly toSite: Socket;
}

/** Opens a tunnel whose ends may be closed one way at a time, runs `play`, and closes what is left. */
async function withTunnel(tunnelIdleMs: number, play: (tunnel: Tunnel, place: ProxyPlace) => Promise<void>) {
  const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await using place = await startProxy(limits, { connectPorts: [port], tunnelIdleMs });
  const made: Socket[] = [];
  const keep = (message: unknown): void => void made.push((message as { socket: Socket }).socket);
  const arrivals = Promise.all([once(place.proxy.server, "connection"), once(server, "connection")]);
  const client = connect({ host: "127.0.0.1", port: place.port, allowHalfOpen: true, noDelay: true });
  subscribe("net.client.socket", keep);
  try {
    client.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    const [opened] = (await once(client, "data")) as [Buffer];
    expect(opened.toString()).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/);
    client.pause();
    const [[toClient], [site]] = (await arrivals) as [[Socket], [Socket]];
    const [toSite] = made.filter(({ remotePort }) => remotePort === port);
    await play({ client, site, toClient, toSite }, place);
  } finally {
    unsubscribe("net.client.socket", keep);
    client.destroy();
    server.close();
  }
}

/** Sends pieces from one end until the proxy has one that the other end does not take. Gives the count of bytes. */
async function fill(from: Socket, proxyEnd: Socket): Promise<number> {
  const before = proxyEnd.bytesWritten;
  for (let count = 1; count <= MOST_PIECES; count++) {
    from.write(piece);
    const bytes = count * piece.length;
    await passed(proxyEnd, before + bytes);
    if (proxyEnd.writableLength > 0) return bytes;
  }
  throw new Error(`${MOST_PIECES} pieces were taken by an end that does not read.`);
}

async function passed(proxyEnd: Socket, bytes: number): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (proxyEnd.bytesWritten < bytes) {
    if (performance.now() > deadlineMs)
      throw new Error(`Not within 10 s: ${bytes} bytes, got ${proxyEnd.bytesWritten}`);
    await turnOfTheLoop();
  }
}

async function readAll(socket: Socket): Promise<number> {
  let bytes = 0;
  for await (const chunk of socket) bytes += (chunk as Buffer).length;
  return bytes;
}

it("passes an answer on to its last byte, to a client that had closed its half and reads late", async () => {
  await withTunnel(10_000, async ({ client, site, toClient, toSite }, place) => {
    client.end();
    await once(site.resume(), "end");
    const bytes = await fill(site, toClient);
    site.end();
    await once(toSite, "close");
    await eventually(() => isSettled(place.limiter), "the place is free as soon as the site has closed");
    expect(await readAll(client)).toBe(bytes);
  });
});

it("passes on to its last byte what a client sends, to a site that had closed its half and reads late", async () => {
  await withTunnel(10_000, async ({ client, site, toClient, toSite }, place) => {
    site.end();
    await once(client.resume(), "end");
    const bytes = await fill(client, toSite);
    client.end();
    await once(toClient, "close");
    expect(isSettled(place.limiter)).toBe(false);
    expect(await readAll(site)).toBe(bytes);
    await eventually(() => isSettled(place.limiter), "the tunnel is over");
  });
});

it("breaks a tunnel off whose client takes no more of what the site has said", async () => {
  await withTunnel(300, async ({ client, site, toClient }) => {
    client.end();
    await once(site.resume(), "end");
    await fill(site, toClient);
    site.end();
    await once(toClient, "close");
    expect(toClient.writableFinished).toBe(false);
  });
});

it("passes an answer on to its last byte when the site has closed and resets what the client sends on", async () => {
  await withTunnel(10_000, async ({ client, site, toClient, toSite }) => {
    const bytes = await fill(site, toClient);
    const ended = once(toSite, "end");
    site.end();
    await ended;
    site.destroy();
    // The first is answered with a reset, which the next one finds.
    await eventually(() => {
      if (!toSite.destroyed) client.write("more");
      return toSite.destroyed;
    }, "the site is found to be gone");
    expect(toSite.errored).toMatchObject({ code: expect.stringMatching(/^(EPIPE|ECONNRESET)$/) as string });
    expect(await readAll(client)).toBe(bytes);
  });
});

/** A client has sent everything and gone, and its site has not taken it yet: stops the proxy. */
async function stopInUpload(graceMs: number, play: (site: Socket, bytes: number) => Promise<void>): Promise<void> {
  await withTunnel(10_000, async ({ client, site, toClient, toSite }, place) => {
    site.end();
    await once(client.resume(), "end");
    const bytes = await fill(client, toSite);
    client.end();
    await once(toClient, "close");
    const closing = place.proxy.close({ graceMs });
    await play(site, bytes);
    await closing;
    expect(toSite.destroyed).toBe(true);
    expect(isSettled(place.limiter)).toBe(true);
    site.resume();
  });
}

it("lets the end of an upload reach its site when the proxy stops", async () => {
  await stopInUpload(10_000, async (site, bytes) => {
    expect(await readAll(site)).toBe(bytes);
  });
});

it("breaks an upload off that its site does not take within the grace of a stop", async () => {
  const startMs = performance.now();
  await stopInUpload(100, () => Promise.resolve());
  expect(performance.now() - startMs).toBeLessThan(8_000);
});
