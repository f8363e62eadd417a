import { checkNames } from "../core/checkNames.js";
import { systemClock } from "../engine/systemClock.js";
import { showValue } from "../policy/showValue.js";
import type { Clock } from "../types.js";
import { wholeNumber } from "./origin/checks.js";
import { Exchange, type Receiver } from "./origin/exchange.js";
import type { Bounds, Incoming } from "./origin/host.js";
import { listenOn } from "./origin/listen.js";
import { LiveCounts } from "./origin/liveCounts.js";
import { behaviourNames, readBehaviour } from "./origin/readBehaviour.js";
import type { Behaviour } from "./origin/rules.js";
import { hostKey, hostKeysOf, Site } from "./origin/site.js";
import type { ListeningOrigin, ListenOptions, OriginBehaviour, OriginBounds, OriginCounts } from "./origin/types.js";
import { type Begin, virtualFetch } from "./origin/virtualFetch.js";

/** How an origin behaves. The behaviour given here is that of every host that `hosts` does not name. */
export interface VirtualOriginOptions extends OriginBehaviour, OriginBounds {
  /**
   * Hosts that behave in their own way, by name, with a port if it matters. An entry replaces the behaviour outside it
   * as a whole. Another origin plays the host itself, with its own counts; it has to have the same clock. Default none.
   */
  readonly hosts?: Readonly<Record<string, OriginBehaviour | VirtualOrigin>>;
}

const boundNames: readonly string[] = [
  "clock",
  "seed",
  "keepRequests",
  "maxArrivals",
  "maxHosts",
  "maxClients",
  "maxInFlight",
];

/** The machine's clock, one for all origins, so that it is one timeline. */
const machineClock = systemClock();

/**
 * A simulated site to test against: it limits, refuses, is slow, lies and breaks as told, and counts exactly what came.
 *
 * One origin plays any number of hosts; each has limits, answers and counts of its own. On a `VirtualClock` nothing
 * takes real time, and the same options, seed and calls give the same run. An origin lives on one clock: while it
 * listens, that is the machine's.
 *
 * Everything is decided when a request arrives. First the limits: all of them let it in, or it is refused. Then the
 * page for its path, `/robots.txt` included; then `answers`; then a plain 200.
 */
export class VirtualOrigin extends LiveCounts {
  /**
   * Calls the origin as `fetch` calls a site. It can be passed on without its origin: `{ fetch: origin.fetch }`.
   *
   * Takes the time the behaviour says, on the origin's clock. Ends at once when the signal is aborted; before the
   * request has arrived, it then never does. The body of a request is not read.
   */
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
  readonly #clock: Clock;
  readonly #bounds: Bounds;
  readonly #usual: Behaviour;
  readonly #named = new Map<string, Behaviour>();
  readonly #others = new Map<string, VirtualOrigin>();
  #site: Site;
  #listening = 0;

  /** Throws `TypeError` or `RangeError` naming the field that is wrong. */
  constructor(options: VirtualOriginOptions = {}) {
    super(() => this.#site.all);
    checkNames(options, [...behaviourNames, ...boundNames, "hosts"], "VirtualOrigin");
    this.#clock = options.clock === undefined ? machineClock : readClock("clock", options.clock);
    this.#bounds = readBounds(options);
    this.#usual = readBehaviour("", options);
    this.#readHosts(options.hosts ?? {});
    this.#site = this.#newSite(this.#clock);
    const begin: Begin = (incoming, receiver) => this.#begin(this.#clock, incoming, receiver);
    this.fetch = (input, init) => virtualFetch(begin, this.#clock, input, init);
  }

  /** What one host has seen, always up to date; nothing if it was never called. With a port only if `hosts` names it so. */
  host(name: string): OriginCounts {
    const key = hostKey(name);
    return this.#others.get(key)?.host(name) ?? new LiveCounts(() => this.#site.countsOf(key));
  }

  /**
   * Plays the same behaviour as a real HTTP server on the loopback address, in real time. Needs `node:http`.
   *
   * The counts are this origin's. Rejects when the port is taken, and when the origin has been called on another clock
   * already: two timelines in one count mean nothing.
   */
  async listen(options: ListenOptions = {}): Promise<ListeningOrigin> {
    checkNames(options, ["port", "clock"], "listen");
    const port = wholeNumber("port", options.port ?? 0, { least: 0, most: 65_535 });
    const clock = options.clock === undefined ? machineClock : readClock("clock", options.clock);
    this.#siteOn(clock);
    this.#listening += 1;
    try {
      const server = await listenOn(port, clock, (incoming, receiver) => this.#begin(clock, incoming, receiver));
      let isOpen = true;
      const close = async (): Promise<void> => {
        if (isOpen) this.#listening -= 1;
        isOpen = false;
        await server.close();
      };
      return { ...server, close, [Symbol.asyncDispose]: close };
    } catch (error) {
      this.#listening -= 1;
      throw error;
    }
  }

  #begin(clock: Clock, incoming: Incoming, receiver: Receiver): Exchange {
    const [withPort, name] = hostKeysOf(incoming.url);
    const other = this.#others.get(this.#named.has(withPort) || this.#others.has(withPort) ? withPort : name);
    if (other !== undefined) return other.#begin(clock, incoming, receiver);
    return new Exchange(this.#siteOn(clock), incoming, receiver);
  }

  /** What is known on this clock. Throws when something is known on another. */
  #siteOn(clock: Clock): Site {
    if (this.#site.clock === clock) return this.#site;
    if (this.#listening > 0 || this.#site.all.total > 0) {
      throw new Error(
        `This origin lives on another clock already, with ${this.#site.all.total} requests. Make one VirtualOrigin for fetch and one to listen, or give both the same clock.`,
      );
    }
    this.#site = this.#newSite(clock);
    return this.#site;
  }

  #newSite(clock: Clock): Site {
    return new Site(clock, { usual: this.#usual, named: this.#named }, this.#bounds);
  }

  #readHosts(hosts: NonNullable<VirtualOriginOptions["hosts"]>): void {
    if (typeof hosts !== "object" || hosts === null) {
      throw new TypeError(`hosts must be an object of behaviours by host name; got ${showValue(hosts)}.`);
    }
    for (const [name, entry] of Object.entries(hosts)) {
      const key = hostKey(name);
      if (this.#named.has(key) || this.#others.has(key)) throw new TypeError(`hosts names ${key} twice.`);
      if (entry instanceof VirtualOrigin) {
        if (entry.#clock !== this.#clock)
          throw new TypeError(`hosts["${name}"] must be an origin with the same clock.`);
        this.#others.set(key, entry);
      } else {
        checkNames(entry, behaviourNames, `hosts["${name}"]`);
        this.#named.set(key, readBehaviour(`hosts["${name}"].`, entry));
      }
    }
  }
}

function readBounds(options: OriginBounds): Bounds {
  const bound = (name: keyof Bounds, usual: number, most: number): number =>
    wholeNumber(name, options[name] ?? usual, { least: 1, most });
  return {
    seed: wholeNumber("seed", options.seed ?? 1, { least: 0, most: Number.MAX_SAFE_INTEGER }),
    keepRequests: bound("keepRequests", 100_000, 10_000_000),
    maxArrivals: bound("maxArrivals", 1_000_000, 100_000_000),
    maxHosts: bound("maxHosts", 10_000, 1_000_000),
    maxClients: bound("maxClients", 10_000, 1_000_000),
    maxInFlight: bound("maxInFlight", 10_000, 1_000_000),
  };
}

function readClock(field: string, clock: Clock): Clock {
  const verbs = ["now", "wall", "setTimer", "clearTimer"] as const;
  if (typeof clock !== "object" || clock === null || verbs.some((verb) => typeof clock[verb] !== "function")) {
    throw new TypeError(`${field} must have now, wall, setTimer and clearTimer; got ${showValue(clock)}.`);
  }
  return clock;
}
