import { checkNames } from "../core/checkNames.js";
import { systemClock } from "../engine/systemClock.js";
import { normaliseHost, readHostOfUrl } from "../policy/host.js";
import { showValue } from "../policy/showValue.js";
import type { Clock } from "../types.js";
import { listenOn, type Send, virtualFetch } from "./origin/clients.js";
import { OriginCounts } from "./origin/counts.js";
import {
  type Behaviour,
  behaviourFields,
  namedValues,
  numberFrom,
  type Reader,
  record,
  usually,
} from "./origin/options.js";
import { Host, type Surroundings } from "./origin/site.js";
import type { ListeningOrigin, ListenOptions, VirtualOriginOptions } from "./origin/types.js";

/** The machine's clock, one for all origins, so that it is one timeline. */
const machineClock = systemClock();

const clockReader: Reader<Clock> = (value, field) => {
  const clock = value as Clock;
  const verbs = ["now", "wall", "setTimer", "clearTimer"] as const;
  if (typeof clock === "object" && clock !== null && verbs.every((verb) => typeof clock[verb] === "function"))
    return clock;
  throw new TypeError(`${field} must have now, wall, setTimer and clearTimer; got ${showValue(value)}.`);
};

const readOptions = record(
  {
    ...behaviourFields,
    hosts: usually({}, namedValues("behaviours by host name", hostKey, record(behaviourFields))),
    clock: usually(machineClock, clockReader),
    seed: usually(1, numberFrom(0, Number.MAX_SAFE_INTEGER, "whole")),
    keepRequests: usually(100_000, numberFrom(1, 10_000_000, "whole")),
    maxArrivals: usually(1_000_000, numberFrom(1, 100_000_000, "whole")),
  },
  "VirtualOrigin",
);

/**
 * A simulated site to test against: it limits, refuses, is slow, lies and breaks as told, and counts exactly what came.
 *
 * One origin plays any number of hosts; each has limits, answers and counts of its own. On a `VirtualClock` nothing
 * takes real time, and the same options, seed and calls give the same run.
 *
 * Everything is decided when a request arrives. First the limits: all of them let it in, or it is refused. Then the
 * page for its path, `/robots.txt` included; then `answers`; then a plain 200.
 */
export class VirtualOrigin extends OriginCounts {
  /**
   * Calls the origin as `fetch` calls a site. It can be passed on without its origin: `{ fetch: origin.fetch }`.
   *
   * Takes the time the behaviour says, on the origin's clock. Ends at once when the signal is aborted; before the
   * request has arrived, it then never does. The body of a request is not read.
   */
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
  readonly #send: Send;
  readonly #around: Surroundings;
  readonly #usual: Behaviour;
  readonly #named: ReadonlyMap<string, Behaviour>;
  readonly #hosts = new Map<string, Host>();

  /** Throws `TypeError` or `RangeError` naming the field that is wrong. */
  constructor(options: VirtualOriginOptions = {}) {
    const { hosts, clock, seed, maxArrivals, keepRequests, ...usual } = readOptions(options, "");
    super(clock, keepRequests);
    this.#around = { clock, seed, maxArrivals, keepRequests, wallOffsetMs: clock.wall() - clock.now(), all: this };
    this.#usual = usual;
    this.#named = hosts;
    this.#send = (incoming, signal) => this.#hostOf(incoming.url).answer(incoming, signal);
    this.fetch = (input, init) => virtualFetch(this.#send, input, init);
  }

  /** What one host has seen, always up to date; nothing if it was never called. With a port only if `hosts` names it so. */
  host(name: string): OriginCounts {
    return this.#host(hostKey(name)).counts;
  }

  /**
   * Plays the same behaviour as a real HTTP server on the loopback address, on the origin's clock. Needs `node:http`.
   *
   * The counts are this origin's. Rejects when the port is taken.
   */
  async listen(options: ListenOptions = {}): Promise<ListeningOrigin> {
    checkNames(options, ["port"], "listen");
    const { port, close } = await listenOn(numberFrom(0, 65_535, "whole")(options.port ?? 0, "port"), this.#send);
    return { url: `http://127.0.0.1:${port}`, port, close, [Symbol.asyncDispose]: close };
  }

  /** The host that answers a URL. A port counts only where `hosts` names it, as in a policy. */
  #hostOf(url: URL): Host {
    const host = readHostOfUrl(url.hostname);
    const name = host.ok ? host.value : url.hostname;
    const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
    const withPort = `${name}:${port}`;
    return this.#host(this.#named.has(withPort) ? withPort : name);
  }

  #host(key: string): Host {
    let host = this.#hosts.get(key);
    if (host === undefined) {
      host = new Host(key, this.#named.get(key) ?? this.#usual, this.#around);
      this.#hosts.set(key, host);
    }
    return host;
  }
}

/** A host name as a test writes it, with a port if it has one, in the one form it is compared in. Throws `TypeError`. */
function hostKey(text: string): string {
  const { host, port } = normaliseHost(text);
  return port === undefined ? host : `${host}:${port}`;
}
