import { connect, type Socket } from "node:net";
import { DelayLine } from "./delayLine.js";

/** What a proxy does wrong at the moment, and what came of it. */
export interface Faults {
  delayMs: number;
  /** Nothing passes in either direction. */
  isSilent: boolean;
  /** Pieces from the server that are lost with their connection; Infinity: all are, and connections stay. */
  repliesToLose: number;
  lostBytes: number;
}

/** One connection through a proxy: the client's half, and the one to the target. */
export class ProxyLink {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #faults: Faults;
  readonly #lines: DelayLine[] = [];
  /** The halves from which something was swallowed. What comes from there later is swallowed as well. */
  readonly #lostFrom = new Set<Socket>();
  readonly #onEnd: () => void;
  #hasEnded = false;

  /** `onEnd` is called once, when both halves are closed or were reset. */
  constructor(client: Socket, target: { host: string; port: number }, faults: Faults, onEnd: () => void) {
    this.#client = client;
    this.#server = connect({ ...target, allowHalfOpen: true, noDelay: true });
    this.#faults = faults;
    this.#onEnd = onEnd;
    this.#carry(this.#client, this.#server);
    this.#carry(this.#server, this.#client);
  }

  /** It swallowed something, in one direction or both, and carries nothing that way any more. */
  get hasLost(): boolean {
    return this.#lostFrom.size > 0;
  }

  /** Breaks both halves at once. What is on the way is lost. */
  reset(): void {
    for (const line of this.#lines) line.clear();
    this.#client.resetAndDestroy();
    this.#server.resetAndDestroy();
    this.#end();
  }

  #carry(from: Socket, to: Socket): void {
    const flow = (): unknown => (line.isFull || to.writableNeedDrain ? from.pause() : from.resume());
    const line = new DelayLine(flow);
    this.#lines.push(line);
    const pass = (bytes: number, deliver: () => void): void => {
      line.send(this.#faults.delayMs, bytes, () => this.#arrive(from, bytes, deliver));
    };
    from.on("data", (piece: Buffer) => {
      pass(piece.length, () => to.write(piece));
      flow();
    });
    to.on("drain", flow);
    from.on("end", () => pass(0, () => to.end()));
    // A reset, or a target that is not there, reaches the other side like everything else.
    from.on("error", () => pass(0, () => this.reset()));
    from.on("close", () => {
      if (this.#client.destroyed && this.#server.destroyed) this.#end();
    });
  }

  /** Decides what becomes of a piece at the moment at which it would arrive. */
  #arrive(from: Socket, bytes: number, deliver: () => void): void {
    const isReply = from === this.#server && bytes > 0;
    const isLostReply = isReply && this.#faults.repliesToLose > 0;
    if (!(this.#lostFrom.has(from) || this.#faults.isSilent || isLostReply)) {
      deliver();
      return;
    }
    this.#lostFrom.add(from);
    this.#faults.lostBytes += bytes;
    if (isLostReply && Number.isFinite(this.#faults.repliesToLose)) {
      this.#faults.repliesToLose -= 1;
      this.reset();
    }
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#onEnd();
  }
}
