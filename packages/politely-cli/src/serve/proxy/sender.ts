import { type ClientRequest, Agent as HttpAgent, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { SiteTimeout } from "./failures.js";
import type { HeaderLines } from "./headerLines.js";
import { type ProxyTarget, socketHost } from "./target.js";
import type { TargetGuard } from "./targetGuard.js";

/** How connections to sites are made. */
export interface SenderOptions {
  readonly guard: TargetGuard;
  readonly connectTimeoutMs: number;
  readonly maxHeaderBytes: number;
  /** Certificates to trust instead of those of Node, PEM. */
  readonly ca: readonly string[] | undefined;
}

/** A request on its way. */
export interface Sent {
  readonly request: ClientRequest;
  /** Whether its first byte may have reached the site. */
  wasSent(): boolean;
}

/** What is to be sent. */
export interface Letter {
  readonly target: ProxyTarget;
  readonly method: string;
  readonly lines: HeaderLines;
  /** False: on a connection of its own, since the site may close an idle one at the very moment it is used. */
  readonly mayReuse: boolean;
}

/** Idle connections are kept for less than the five seconds after which many servers close them. */
const IDLE_MS = 3_000;
/** For each site. */
const MAX_IDLE = 8;

/** Sends requests to sites, over connections that the guard has looked at. */
export class Sender {
  readonly #http: HttpAgent;
  readonly #https: HttpsAgent;

  constructor(readonly options: SenderOptions) {
    const kept = { keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS };
    this.#http = new HttpAgent(kept);
    this.#https = new HttpsAgent({ ...kept, ...this.#trust });
  }

  /** Begins a request; its body is the caller's to write. Throws a 403 for an address that is refused, and what Node says of a bad header. */
  send({ target, method, lines, mayReuse }: Letter): Sent {
    const { guard, maxHeaderBytes } = this.options;
    const host = socketHost(target.hostname);
    guard.checkLiteral(host, target.port);
    const common = {
      host,
      port: target.port,
      method,
      path: target.path,
      headers: lines,
      maxHeaderSize: maxHeaderBytes,
    };
    const options = { ...common, lookup: guard.lookupFor(target.port) };
    const servername = isIP(host) === 0 ? host.replace(/\.$/, "") : "";
    const request = target.isSecure
      ? httpsRequest({ ...options, ...this.#trust, servername, agent: mayReuse ? this.#https : false })
      : httpRequest({ ...options, agent: mayReuse ? this.#http : false });
    // Node would leave those beyond the 2,000th out; the size of all together is bounded already.
    request.maxHeadersCount = 0;
    return { request, wasSent: this.#watch(request, target.isSecure) };
  }

  /** Ends idle connections, and those in use as well. */
  destroy(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  get #trust(): { readonly ca?: string[] } {
    const { ca } = this.options;
    return ca === undefined ? {} : { ca: [...ca] };
  }

  #watch(request: ClientRequest, isSecure: boolean): () => boolean {
    const { connectTimeoutMs } = this.options;
    let isConnected = false;
    request.once("socket", (socket) => {
      if (!socket.connecting) {
        isConnected = true;
        return;
      }
      const timer = setTimeout(() => {
        request.destroy(new SiteTimeout(`The site did not take the connection within ${connectTimeoutMs} ms.`));
      }, connectTimeoutMs);
      const stop = (): void => clearTimeout(timer);
      socket.once("close", stop);
      socket.once(isSecure ? "secureConnect" : "connect", () => {
        isConnected = true;
        stop();
      });
    });
    return () => isConnected;
  }
}
