import { lstatSync, rmSync } from "node:fs";
import type { Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { UsageError, WorkError } from "../errors.js";

/** Bytes that the path of a Unix socket may have. Node cuts off what is longer, and would listen somewhere else. */
const PATH_MOST = process.platform === "linux" ? 107 : 103;

/** Opens a server on an address. Resolves to its URL. Throws `WorkError` where the port is taken or may not be had. */
export async function listenAt(server: Server, host: string, port: number): Promise<string> {
  await listening(server, `${urlHost(host)}:${port}`, () => server.listen({ host, port }));
  return `http://${urlHost(host)}:${(server.address() as AddressInfo).port}`;
}

/**
 * Opens a server on a Unix socket that only this user may use. What a killed service left there is removed.
 *
 * Throws `UsageError` for a path where something else is or that is too long, and `WorkError` where another service answers.
 */
export async function listenOn(server: Server, path: string): Promise<void> {
  const bytes = Buffer.byteLength(path);
  if (bytes > PATH_MOST) {
    throw new UsageError(
      `--socket ${path} has ${bytes} bytes, and a socket's path ${PATH_MOST} at most. Name a shorter one.`,
    );
  }
  await clear(path);
  await listening(server, path, () => {
    // The socket is made before `listen` returns, and must never be there for others, not for a moment.
    const mask = process.umask(0o177);
    try {
      server.listen({ path });
    } finally {
      process.umask(mask);
    }
  });
}

/** Closes a server: what is being answered may end, for `patienceMs` at most. */
export async function closeServer(server: Server, patienceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  const sweep = setInterval(() => server.closeIdleConnections(), 20);
  const cut = setTimeout(() => server.closeAllConnections(), patienceMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(cut);
}

function listening(server: Server, name: string, listen: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const reason = error.code === "EADDRINUSE" ? "it is in use; another service may be running" : error.message;
      reject(new WorkError(`cannot listen on ${name}: ${reason}`));
    });
    server.once("listening", resolve);
    listen();
  });
}

async function clear(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new UsageError(`--socket ${path} is a file already. Name a path that is free.`);
  if (await answers(path)) throw new WorkError(`cannot listen on ${path}: another service answers there.`);
  rmSync(path, { force: true });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

function urlHost(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
