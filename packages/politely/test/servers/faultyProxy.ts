import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { freePort } from "../fleet/freePort.js";
import { type Faults, ProxyLink } from "./proxyLink.js";

const host = "127.0.0.1";
const maxDelayMs = 60_000;
const maxConnections = 10_000;
const portAttempts = 5;

/**
 * A TCP proxy on loopback that can be told to misbehave as networks do.
 *
 * A stream never loses bytes from its middle: a connection that lost some carries nothing any more, and is reset by `heal`
 * at the latest. Faults add up until `heal`.
 */
export interface FaultyProxy extends AsyncDisposable {
  readonly host: string;
  /** The same for the whole life of the proxy, also while nobody listens on it. */
  readonly port: number;
  /** Connections of clients that are open. */
  readonly connectionCount: number;
  /** Bytes swallowed so far, in both directions. */
  readonly lostBytes: number;
  /** Makes everything arrive this much later, in each direction: 0 to 60,000 ms. Replaces the delay before it, for what comes from now on. */
  delay(ms: number): void;
  /** Resets all connections. New ones are refused. */
  cut(): Promise<void>;
  /** Swallows everything in both directions, the end of a connection too. Connections stay, and new ones are accepted. */
  halfOpen(): void;
  /**
   * Lets requests reach the server and loses replies.
   *
   * With a `count`, that many pieces of reply are lost, each with its connection, which is reset once the server has answered. One
   * request under way makes one piece if its reply is below 64 KiB. Without, all replies are lost and connections stay, silent.
   */
  swallowReplies(count?: number): void;
  /** Ends every fault: connections that lost bytes are reset, the others go on, and new ones are accepted. */
  heal(): Promise<void>;
  /** Resets all connections and listens no more. A second call does nothing. */
  stop(): Promise<void>;
}

/** Starts a proxy before `target`, and resolves once it listens. A client whose target cannot be reached is reset. */
export async function faultyProxy(target: { readonly host: string; readonly port: number }): Promise<FaultyProxy> {
  const links = new Set<ProxyLink>();
  const faults: Faults = { delayMs: 0, isSilent: false, repliesToLose: 0, lostBytes: 0 };
  const accept = (client: Socket): void => {
    if (links.size >= maxConnections) {
      client.resetAndDestroy();
      return;
    }
    const link = new ProxyLink(client, target, faults, () => links.delete(link));
    links.add(link);
  };
  let listener: Server | undefined = await listenAnywhere(accept);
  const port = portOf(listener);
  let isStopped = false;

  const cut = async (): Promise<void> => {
    const closing = listener;
    listener = undefined;
    const closed = closing === undefined ? undefined : once(closing, "close");
    closing?.close();
    for (const link of links) link.reset();
    await closed;
  };
  const stop = async (): Promise<void> => {
    isStopped = true;
    await cut();
  };
  return {
    host,
    port,
    get connectionCount() {
      return links.size;
    },
    get lostBytes() {
      return faults.lostBytes;
    },
    delay(ms) {
      if (!(ms >= 0 && ms <= maxDelayMs)) throw new RangeError(`delay must be from 0 to ${maxDelayMs} ms; got ${ms}`);
      faults.delayMs = ms;
    },
    cut,
    halfOpen() {
      faults.isSilent = true;
    },
    swallowReplies(count = Number.POSITIVE_INFINITY) {
      if (!(count >= 1)) throw new RangeError(`swallowReplies needs a count from 1; got ${count}`);
      faults.repliesToLose = count;
    },
    async heal() {
      if (isStopped) throw new Error("This proxy was stopped; start another one.");
      Object.assign(faults, { delayMs: 0, isSilent: false, repliesToLose: 0 });
      for (const link of links) if (link.hasLost) link.reset();
      listener ??= await listen(port, accept);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function listenAnywhere(accept: (client: Socket) => void): Promise<Server> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await listen(await freePort(), accept);
    } catch (error) {
      if (attempt === portAttempts) throw error;
    }
  }
}

async function listen(port: number, accept: (client: Socket) => void): Promise<Server> {
  const listener = createServer({ allowHalfOpen: true, noDelay: true }, accept).listen(port, host);
  await once(listener, "listening");
  return listener;
}

function portOf(listener: Server): number {
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port; try again.");
  return address.port;
}
