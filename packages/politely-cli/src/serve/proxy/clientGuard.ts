import type { IncomingMessage } from "node:http";
import { Secret } from "../secret.js";
import { isLoopbackAddress } from "./addresses.js";
import { valuesOf } from "./headerLines.js";
import { ProxyProblem } from "./proxyProblem.js";
import { gatewayOrigin } from "./requestHead.js";
import type { Form, ProxyTarget } from "./target.js";

/** Who may use the proxy. */
export interface ClientGuardOptions {
  /** Given: everybody has to send it. Absent: only this machine may ask. */
  readonly token?: string | undefined;
  /** Further names, beside localhost and the address itself, under which a client may call the gateway. */
  readonly allowedHosts?: readonly string[] | undefined;
}

/** Decides who may use the proxy. */
export class ClientGuard {
  readonly #secret: Secret | undefined;

  constructor(readonly options: ClientGuardOptions) {
    this.#secret = options.token === undefined ? undefined : new Secret(options.token);
  }

  /** Throws 403 for another machine's client where no token is set, else 407 or 401 without the right one. */
  checkClient(request: IncomingMessage, form: Form): void {
    const { remoteAddress } = request.socket;
    if (this.#secret === undefined) {
      // A Unix socket has no address; its file's permissions decide.
      if (remoteAddress === undefined || isLoopbackAddress(remoteAddress)) return;
      throw new ProxyProblem(403, "Without --token the proxy serves this machine only.");
    }
    const { headers, rawHeaders } = request;
    if (form === "proxy") {
      if (!this.isOurs(headers["proxy-authorization"])) throw tokenWanted(407, "Proxy-Authenticate");
      return;
    }
    const isIn = valuesOf(rawHeaders, "authorization").some((credentials) => this.isOurs(credentials));
    if (!isIn && !this.#is(headers["politely-token"])) throw tokenWanted(401, "WWW-Authenticate");
  }

  /** Whether credentials are the token: as Bearer, or as Basic in the place of the password; of the user where there is no password. */
  isOurs(credentials: string | undefined): boolean {
    const [, scheme, value] = /^(Basic|Bearer) +(\S+) *$/i.exec(credentials ?? "") ?? [];
    if (scheme === undefined) return false;
    if (scheme.toLowerCase() === "bearer") return this.#is(value);
    const text = Buffer.from(value, "base64").toString();
    const colon = text.indexOf(":");
    const [user, password] = colon < 0 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 1)];
    return this.#is(password === "" ? user : password);
  }

  /**
   * Throws when a browser was led here by somebody else: 421 for a name that is not ours (DNS rebinding), 403 for a page of another site.
   * A page at the target's own origin may name it.
   */
  checkGateway(request: IncomingMessage, target: ProxyTarget): void {
    const { host = "", origin, "sec-fetch-site": site } = request.headers;
    if (!this.#isOwnName(host, request.socket.localAddress)) {
      throw new ProxyProblem(
        421,
        `The gateway does not answer for ${JSON.stringify(host.slice(0, 100))}. Call it by its address or localhost, or allow the name with --allow-host.`,
      );
    }
    const isForeign = origin !== undefined && ![gatewayOrigin(request), target.origin].includes(origin.toLowerCase());
    if (isForeign || (site !== undefined && site !== "none" && site !== "same-origin")) {
      throw new ProxyProblem(403, "The gateway is for programs: it answers no requests of other sites' pages.");
    }
  }

  #isOwnName(host: string, localAddress: string | undefined): boolean {
    const name = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname.replace(/\.$/, "") : "";
    const bare = name.startsWith("[") ? name.slice(1, -1) : name;
    if (name === "localhost" || localAddress === undefined) return true;
    if (bare === localAddress.replace(/^::ffff:(?=\d+\.)/, "")) return true;
    return this.options.allowedHosts?.some((each) => each.toLowerCase() === name) ?? false;
  }

  #is(given: string | readonly string[] | undefined): boolean {
    return typeof given === "string" && this.#secret?.is(given) === true;
  }
}

function tokenWanted(status: number, header: string): ProxyProblem {
  const how =
    status === 407
      ? "Send Proxy-Authorization: http_proxy=http://politely:TOKEN@host:port"
      : "Send the header Politely-Token, or write http://politely:TOKEN@host:port/https://…";
  return new ProxyProblem(status, `This proxy asks for its token. ${how}.`, {
    headers: { [header]: 'Basic realm="politely"' },
  });
}
