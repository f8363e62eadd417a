import { normaliseHost, readHostOfUrl } from "../../policy/host.js";
import type { Clock } from "../../types.js";
import { type Bounds, Host, type Incoming, type Surroundings } from "./host.js";
import type { Behaviour } from "./rules.js";
import { Tally } from "./tally.js";

/** Everything that an origin knows on one clock: its hosts and what they have seen. */
export class Site {
  readonly clock: Clock;
  readonly all: Tally;
  /** Requests between their call and their arrival. */
  travelling = 0;
  readonly #around: Surroundings;
  readonly #usual: Behaviour;
  readonly #named: ReadonlyMap<string, Behaviour>;
  readonly #nothing: Tally;
  readonly #hosts = new Map<string, Host>();

  constructor(clock: Clock, behaviours: { usual: Behaviour; named: ReadonlyMap<string, Behaviour> }, bounds: Bounds) {
    this.clock = clock;
    this.all = new Tally(clock, bounds.keepRequests);
    this.#nothing = new Tally(clock, 1);
    this.#around = { clock, bounds, wallOffsetMs: clock.wall() - clock.now(), all: this.all };
    this.#usual = behaviours.usual;
    this.#named = behaviours.named;
  }

  /** The host that answers a URL. Throws `RangeError` when that would be one too many. */
  hostOf({ url }: Incoming): Host {
    const [withPort, name] = hostKeysOf(url);
    const key = this.#named.has(withPort) ? withPort : name;
    const known = this.#hosts.get(key);
    if (known !== undefined) return known;
    const { maxHosts } = this.#around.bounds;
    if (this.#hosts.size >= maxHosts) {
      throw new RangeError(`This origin already plays ${maxHosts} hosts; ${key} would be one more. Raise maxHosts.`);
    }
    const host = new Host(key, this.#named.get(key) ?? this.#usual, this.#around);
    this.#hosts.set(key, host);
    return host;
  }

  /** What a host has seen, by its key; nothing when it was never called. */
  countsOf(key: string): Tally {
    return this.#hosts.get(key)?.tally ?? this.#nothing;
  }

  /** No room for one more request. */
  get isFull(): boolean {
    return this.all.inFlight + this.travelling >= this.#around.bounds.maxInFlight;
  }
}

/** The names that a URL's host may go by in `hosts`, with its port and without. A port counts only where it is named, as in a policy. */
export function hostKeysOf(url: URL): readonly [withPort: string, name: string] {
  const host = readHostOfUrl(url.hostname);
  const name = host.ok ? host.value : url.hostname;
  const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
  return [`${name}:${port}`, name];
}

/** A host name as a test writes it, with a port if it has one, in the one form it is compared in. Throws `TypeError`. */
export function hostKey(text: string): string {
  const { host, port } = normaliseHost(text);
  return port === undefined ? host : `${host}:${port}`;
}
