// @ts-check
import { once } from "node:events";
import { connect } from "node:net";
import { ensure } from "./timing.mjs";

/** @typedef {{ readonly host: string; readonly port: number }} Address */

/**
 * The bytes of a request with a JSON body.
 *
 * @param {Address} address
 * @param {string} path
 * @param {object} body
 */
export function postBytes({ host, port }, path, body) {
  const text = JSON.stringify(body);
  const head = [
    `POST ${path} HTTP/1.1`,
    `Host: ${host}:${port}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(text)}`,
  ];
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${text}`);
}

/** One connection that asks and waits for the answer, again and again; cheap, so that the server is what is measured. */
export class RawCaller {
  /** @type {(answer: { status: number; body: string }) => void} */
  #onAnswer = () => undefined;
  #text = "";

  /** @param {import("node:net").Socket} socket */
  constructor(socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (/** @type {string} */ chunk) => this.#received(chunk));
    socket.on("error", () => undefined);
  }

  /** @param {Address} address */
  static async open(address) {
    const socket = connect(address);
    await once(socket, "connect");
    return new RawCaller(socket);
  }

  /** @param {Buffer} bytes @returns {Promise<{ status: number; body: string }>} */
  ask(bytes) {
    return new Promise((resolve) => {
      this.#onAnswer = resolve;
      this.socket.write(bytes);
    });
  }

  close() {
    this.socket.destroy();
  }

  /** @param {string} chunk */
  #received(chunk) {
    this.#text = this.#text === "" ? chunk : this.#text + chunk;
    const end = this.#text.indexOf("\r\n\r\n");
    if (end < 0) return;
    const at = this.#text.indexOf("ontent-length: ") + 15;
    const length = at < 15 || at > end ? 0 : Number.parseInt(this.#text.slice(at, at + 12), 10);
    if (this.#text.length < end + 4 + length) return;
    const body = this.#text.slice(end + 4, end + 4 + length);
    const status = Number(this.#text.slice(9, 12));
    this.#text = this.#text.slice(end + 4 + length);
    this.#onAnswer({ status, body });
  }
}

/**
 * Answers per second when so many callers ask the same without a pause for `ms`.
 *
 * @param {readonly RawCaller[]} callers
 * @param {Buffer} bytes
 * @param {number} ms
 */
export async function answersPerSecond(callers, bytes, ms) {
  let answers = 0;
  const startMs = performance.now();
  const endMs = startMs + ms;
  await Promise.all(
    callers.map(async (caller) => {
      while (performance.now() < endMs) {
        const { status } = await caller.ask(bytes);
        ensure(status === 200, `an answer had status ${status}`);
        answers += 1;
      }
    }),
  );
  return (answers * 1000) / (performance.now() - startMs);
}
