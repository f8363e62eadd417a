import { connect, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ProblemError } from "../api/problem.js";
import { ClientGone, failureOf, SiteTimeout } from "./failures.js";
import { ProxyProblem, rawProblem } from "./proxyProblem.js";
import { socketHost } from "./target.js";
import type { TargetGuard } from "./targetGuard.js";
import type { Turn, Turns } from "./turns.js";

/** What every tunnel works with. */
export interface TunnelContext {
  readonly turns: Turns;
  readonly guard: TargetGuard;
  readonly connectTimeoutMs: number;
  /** A tunnel through which nothing went for this long is closed. */
  readonly tunnelIdleMs: number;
  /** Aborted when the proxy breaks off what is left. */
  readonly broken: AbortSignal;
}

/** One CONNECT. */
export interface TunnelTask {
  readonly client: Duplex;
  /** What the client sent without waiting for the answer. */
  readonly early: Buffer;
  readonly hostname: string;
  readonly port: number;
  /** Hears when it is open. */
  readonly onOpen: () => void;
}

/** What a client may send before its tunnel is open; a TLS greeting is much smaller. */
const MAX_EARLY_BYTES = 65_536;

/**
 * Waits for its turn, connects, and passes bytes on both ways until both have ended or one breaks off.
 *
 * One turn for the whole tunnel, kept while the site is connected: `concurrency` counts open connections. What is said inside is not seen, so nothing is
 * learned but whether the site takes connections. Resolves when it is over; throws a `ProxyProblem` while nothing was answered.
 */
export async function tunnel(context: TunnelContext, task: TunnelTask): Promise<void> {
  const { client, hostname, port } = task;
  const host = socketHost(hostname);
  context.guard.checkLiteral(host, port);
  const early = new EarlyBytes(client, task.early);
  const turn = await context.turns.take(`https://${hostname}:${port}/`, early.away);
  let site: Socket;
  try {
    site = await open(context, host, port, early.away);
  } catch (error) {
    // Nothing of the tunnel has reached the site before it is open.
    const { problem, outcome } = failureOf(error, false);
    turn.end(outcome);
    throw problem;
  }
  await join(context, task, { site, turn, early: early.take() });
}

/** Answers a CONNECT with a problem and closes the connection. */
export function refuseTunnel(client: Duplex, problem: ProblemError): void {
  if (client.destroyed) return;
  client.on("error", () => undefined);
  client.end(rawProblem(problem), () => client.destroy());
}

function open(
  { guard, connectTimeoutMs }: TunnelContext,
  host: string,
  port: number,
  away: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const site = connect({ host, port, lookup: guard.lookupFor(port), allowHalfOpen: true, noDelay: true });
    const leave = (): void => void site.destroy(new ClientGone("The client went away."));
    const timer = setTimeout(() => {
      site.destroy(new SiteTimeout(`The site did not take the connection within ${connectTimeoutMs} ms.`));
    }, connectTimeoutMs);
    const settle = (): void => {
      clearTimeout(timer);
      away.removeEventListener("abort", leave);
    };
    away.addEventListener("abort", leave, { once: true });
    if (away.aborted) leave();
    site.once("error", (error) => {
      settle();
      reject(error);
    });
    site.once("connect", () => {
      settle();
      resolve(site);
    });
  });
}

interface Ends {
  readonly site: Socket;
  readonly turn: Turn;
  readonly early: Buffer;
}

function join(context: TunnelContext, { client, onOpen }: TunnelTask, { site, turn, early }: Ends): Promise<void> {
  const { tunnelIdleMs, broken } = context;
  return new Promise((resolve) => {
    const over = (): void => {
      broken.removeEventListener("abort", over);
      client.destroy();
      site.destroy();
      turn.end();
      resolve();
    };
    broken.addEventListener("abort", over, { once: true });
    // A half that has ended is passed on by the pipes. What one side has said to its end is still owed to the other, which may read slowly.
    const finish = (other: Duplex): void => {
      if (other.writableFinished || other.destroyed) {
        over();
        return;
      }
      other.once("finish", over).resume();
      if (other instanceof Socket) other.setTimeout(tunnelIdleMs, over);
    };
    client.on("error", over).once("close", () => {
      if (client.readableEnded && client.writableFinished) finish(site);
      else over();
    });
    // A site that has answered and gone resets what the client sends on; its answer stands.
    site
      .on("error", () => undefined)
      .once("close", () => {
        turn.end();
        if (site.readableEnded) finish(client);
        else over();
      });
    site.setTimeout(tunnelIdleMs, over);
    const waitedMs = Math.round(turn.waitedMs);
    client.write(`HTTP/1.1 200 Connection Established\r\nPolitely-Waited-Ms: ${waitedMs}\r\n\r\n`);
    onOpen();
    if (early.length > 0) site.write(early);
    client.pipe(site);
    site.pipe(client);
    if (client.destroyed || site.destroyed || broken.aborted) over();
  });
}

/** Keeps what a client sends while it waits, and notices when it goes away. */
class EarlyBytes {
  readonly #away = new AbortController();
  #pieces: Buffer[];
  #byteCount: number;

  constructor(
    readonly client: Duplex,
    first: Buffer,
  ) {
    this.#pieces = [first];
    this.#byteCount = first.length;
    client.on("data", this.#keep).once("end", this.#leave).once("close", this.#leave).once("error", this.#leave);
    if (client.destroyed || client.readableEnded) this.#leave();
  }

  /** Aborted when the client has gone, or sends too much too early. */
  get away(): AbortSignal {
    return this.#away.signal;
  }

  /** What has arrived so far. The client is somebody else's to read from now on. */
  take(): Buffer {
    this.client.pause();
    this.client.off("data", this.#keep).off("end", this.#leave).off("close", this.#leave).off("error", this.#leave);
    return Buffer.concat(this.#pieces);
  }

  readonly #keep = (piece: Buffer): void => {
    this.#byteCount += piece.length;
    if (this.#byteCount > MAX_EARLY_BYTES) {
      this.#away.abort(new ProxyProblem(413, `More than ${MAX_EARLY_BYTES} bytes came before the tunnel was open.`));
    } else this.#pieces.push(piece);
  };

  readonly #leave = (): void => this.#away.abort(new ClientGone("The client went away."));
}
