import { lookup as resolve } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { isOwnAddress, isPrivateAddress } from "./addresses.js";
import { ProxyProblem } from "./proxyProblem.js";

/** Which addresses may be connected to. */
export interface TargetGuardOptions {
  /** True: also those that are none of the public internet. */
  readonly allowPrivate: boolean;
  /** The ports of this service, on any address of this machine: never. Asked at each connection. */
  readonly ownPorts: () => readonly number[];
}

/**
 * Decides on the address that is connected to, never on a name.
 *
 * A name is looked up once, by the connection itself, and only the addresses that pass are handed to it: nothing can change in between.
 */
export class TargetGuard {
  constructor(readonly options: TargetGuardOptions) {}

  /** Throws a 403 when the host is an address that is refused. A name passes: `lookupFor` looks at its addresses. */
  checkLiteral(host: string, port: number): void {
    if (isIP(host) !== 0 && !this.#isAllowed(host, port)) throw refused(host, [host]);
  }

  /** What a connection to `port` looks names up with. Fails with a 403 when no address of the name is allowed. */
  lookupFor(port: number): LookupFunction {
    return (host, options, callback) => {
      resolve(host, { ...options, all: true }, (error, found) => {
        if (error !== null) {
          callback(error, "");
          return;
        }
        const allowed = found.filter(({ address }) => this.#isAllowed(address, port));
        const [first] = allowed;
        if (first === undefined)
          callback(
            refused(
              host,
              found.map(({ address }) => address),
            ),
            "",
          );
        else if (options.all === true) callback(null, allowed);
        else callback(null, first.address, first.family);
      });
    };
  }

  #isAllowed(address: string, port: number): boolean {
    if (this.options.ownPorts().includes(port) && isOwnAddress(address)) return false;
    return this.options.allowPrivate || !isPrivateAddress(address);
  }
}

function refused(host: string, addresses: readonly string[]): ProxyProblem {
  const found =
    addresses.length === 1 && addresses[0] === host ? "" : ` (${addresses.slice(0, 4).join(", ") || "no address"})`;
  return new ProxyProblem(
    403,
    `"${host}"${found} is a private address or the service itself. Start the service with --allow-private to reach private addresses; its own ports are never reached.`,
    { proxyError: "destination_ip_prohibited" },
  );
}
