import { setMaxListeners } from "node:events";
import type { Socket } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Caller } from "../callers.js";
import type { ServicePermit } from "../serviceLimiter.js";
import { type ApiParts, type TargetBody, targetOf } from "./apiParts.js";
import { asProblem, stoppingProblem } from "./asProblem.js";
import { sendProblem } from "./problem.js";
import { TTL_MS } from "./schemas.js";

/** The body of an acquire. */
export interface AcquireBody extends TargetBody {
  readonly maxWaitMs?: number;
  readonly priority?: number;
  readonly cost?: number;
  readonly ttlMs?: number;
}

const GONE = new Error("The caller closed the connection.");

/**
 * The waits of one connection, and what ends them. Nothing ends one of them alone: its callers leave together, and are dismissed together. So one does for all that
 * come after each other, and making it is no part of the way to a grant.
 */
interface Waits {
  readonly cancel: AbortController;
  count: number;
}

const waitsBySocket = new WeakMap<Socket, Waits>();

function waitsOf(socket: Socket): Waits {
  const known = waitsBySocket.get(socket);
  if (known !== undefined) return known;
  const cancel = new AbortController();
  // Requests that stand in line on one connection each listen.
  setMaxListeners(0, cancel.signal);
  if (socket.destroyed) cancel.abort(GONE);
  else socket.once("close", () => cancel.abort(GONE));
  const waits: Waits = { cancel, count: 0 };
  waitsBySocket.set(socket, waits);
  return waits;
}

/**
 * Whether nobody would notice when a connection closes, asked when a request has arrived on it: somebody waits, and so many answers stand behind that Node reads no
 * further. A caller that reads its answers before it asks for more never gets there.
 */
export function isDeaf(socket: Socket): boolean {
  return socket.isPaused() && (waitsBySocket.get(socket)?.count ?? 0) > 0;
}

/**
 * A caller of `acquire`, from the question to the last byte of its answer.
 *
 * Whatever happens to the connection, a grant is either with its caller or given back as unused: the wait ends when the connection closes, and a permit
 * whose answer could not be written is taken back.
 */
export class WaitingCaller implements Caller {
  place = -1;
  readonly #socket: Socket;
  readonly #waits: Waits;
  /** The permit, once there is one. */
  #id: string | undefined = undefined;

  constructor(
    readonly parts: ApiParts,
    readonly request: FastifyRequest<{ Body: AcquireBody }>,
    readonly reply: FastifyReply,
  ) {
    // Not the response: those behind another one on the same connection hear nothing of its end.
    this.#socket = request.raw.socket;
    this.#waits = waitsOf(this.#socket);
  }

  /** Asks for the start. Whatever comes of it is answered. */
  begin(): void {
    const { limiter, callers } = this.parts;
    const { body } = this.request;
    const { maxWaitMs: maxWait, priority, cost } = body;
    callers.enter(this);
    this.#waits.count += 1;
    const options = { signal: this.#waits.cancel.signal, maxWait, priority, cost };
    limiter.acquire(targetOf(body), options).then(this.#onGrant, this.#onRefusal);
  }

  dismiss(): void {
    this.#waits.cancel.abort(stoppingProblem());
  }

  #leave(): void {
    this.parts.callers.leave(this);
    this.#waits.count -= 1;
  }

  readonly #onGrant = (permit: ServicePermit): void => {
    const { permits } = this.parts;
    this.#leave();
    const { ttlMs = TTL_MS.usual } = this.request.body;
    this.#id = permits.add(permit, ttlMs);
    if (this.#socket.destroyed || !this.#socket.writable) {
      permits.takeBack(this.#id);
      return;
    }
    this.#socket.once("close", this.#onClose);
    this.reply.raw.once("finish", this.#onAnswered);
    this.reply.send({ permit: this.#id, domain: permit.key, waitedMs: permit.waitedMs, ttlMs });
  };

  readonly #onRefusal = (error: unknown): void => {
    this.#leave();
    if (this.#socket.destroyed) return;
    const problem = asProblem(error);
    // The handler of errors writes it to the log.
    if (problem.status === 500) this.reply.send(error);
    else sendProblem(this.reply, problem);
  };

  readonly #onAnswered = (): void => {
    this.#socket.off("close", this.#onClose);
  };

  readonly #onClose = (): void => {
    if (this.#id !== undefined) this.parts.permits.takeBack(this.#id);
  };
}
