import { type Limiter, type PolicyInput, politely } from "politely";
import { Rules } from "../policy/rules.js";
import { type ShortLimits, shortLimits } from "./shortLimits.js";

const MAX_KNOWN = 100_000;

/** Tells under which key the limiter counts a URL, and what its limits are. It takes nothing. */
export class Keys {
  readonly #limiter: Limiter;
  readonly #rules: Rules;
  /** By host and port: nothing else of a URL matters to a policy from a file. */
  readonly #known = new Map<string, string>();
  readonly #words = new Map<string, ShortLimits>();

  /** Throws `PolicyError` for a policy with problems. */
  constructor(policy: PolicyInput) {
    this.#limiter = politely(policy);
    this.#rules = new Rules(policy);
  }

  keyOf(url: string): string {
    const from = url.indexOf("//") + 2;
    const end = url.indexOf("/", from);
    const host = url.slice(from, end < 0 ? url.length : end);
    const known = this.#known.get(host);
    if (known !== undefined) return known;
    const { key } = this.#limiter.explain(url);
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(host, key);
    return key;
  }

  /** The limits of a key in words. */
  words(key: string): ShortLimits {
    const known = this.#words.get(key);
    if (known !== undefined) return known;
    const words = shortLimits(this.#rules.of(key).limits);
    if (this.#words.size >= MAX_KNOWN) this.#words.clear();
    this.#words.set(key, words);
    return words;
  }
}
