import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** One request as the site saw it. */
export interface Arrival {
  /** On `performance.now()` of this process. */
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingMessage["headers"];
  /** Bytes of its body so far. */
  bodyBytes: number;
}

/** A site on this machine that writes down what it is asked. */
export interface Origin extends AsyncDisposable {
  readonly port: number;
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  readonly seen: readonly Arrival[];
  /** Requests that were no HTTP. */
  readonly malformed: readonly string[];
  /** Connections made to it. */
  readonly connectionCount: number;
  /** Resolves once it has seen so many requests. */
  until(count: number): Promise<void>;
}

/** Answers a request. Without one, every path answers 200 with its name. */
export type Answer = (request: IncomingMessage, response: ServerResponse, arrival: Arrival) => void;

const named: Answer = (request, response) => {
  response.writeHead(200, { "content-type": "text/plain" }).end(`page ${request.url}`);
};

/** A certificate for 127.0.0.1 and localhost that nobody else knows, made anew. */
export function selfSigned(): { readonly key: string; readonly cert: string } {
  const folder = mkdtempSync(join(tmpdir(), "politely-cert-"));
  try {
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    execFileSync("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert], { stdio: "ignore" });
    return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Starts a site on 127.0.0.1; with a certificate it speaks https. */
export async function startOrigin(
  answer: Answer = named,
  secure?: { readonly key: string; readonly cert: string },
): Promise<Origin> {
  const seen: Arrival[] = [];
  const malformed: string[] = [];
  let connectionCount = 0;
  let wake: () => void = () => undefined;
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const { method = "", url: path = "", rawHeaders, headers } = request;
    const arrival: Arrival = { atMs: performance.now(), method, path, rawHeaders, headers, bodyBytes: 0 };
    seen.push(arrival);
    wake();
    answer(request, response, arrival);
  };
  const server = secure === undefined ? createServer(listener) : createSecureServer(secure, listener);
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    // A client that goes away, even in the middle of a request, has sent nothing wrong.
    if (error.code?.startsWith("HPE_") && error.code !== "HPE_INVALID_EOF_STATE") malformed.push(error.code);
    socket.destroy();
  });
  server.on("connection", () => {
    connectionCount += 1;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${secure === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    seen,
    malformed,
    get connectionCount() {
      return connectionCount;
    },
    async until(count) {
      while (seen.length < count) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
