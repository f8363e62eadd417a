import { contactIn } from "../policy/httpRules.js";
import type { Pacer } from "./pacer.js";

/** So many hosts are remembered as warned of; beyond that nobody is warned again. */
const MAX_WARNED = 10_000;

/** Says who is calling, and warns once per host whose site wants to know how to reach the caller when nobody says. */
export class Identity {
  readonly #warned = new Set<string>();

  constructor(readonly pacer: Pacer) {}

  /** The User-Agent for a request that has none of its own; undefined when the policy names none. */
  get userAgent(): string | undefined {
    return this.pacer.http().userAgent;
  }

  /** Looks at the request that is about to be sent to a key's host. `ownAgent` gives the User-Agent it brings along. */
  look(key: string, ownAgent: (() => string | null | undefined) | undefined): void {
    const preset = this.pacer.contactWantedBy(key);
    if (preset === undefined || this.#warned.has(key) || this.#warned.size >= MAX_WARNED) return;
    if (this.pacer.http().contact !== undefined || contactIn(ownAgent?.()) !== undefined) return;
    this.#warned.add(key);
    const message = `the site (preset ${preset}) asks callers to say how they can be reached; set http.userAgent and http.contact`;
    this.pacer.tell({ type: "warn", key, message });
  }
}
