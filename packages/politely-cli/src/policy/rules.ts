import { type HostLimits, type Limits, type PolicyInput, politely } from "politely";
import "politely/domains";
import { collector, findPreset } from "politely/presets";

/** The limits of one host, and where they come from. */
export interface HostRule {
  /** `"hosts.example.com"`, `"presets.arxiv"`, `"default"`; `"localhost"` for this machine, which is not paced. */
  readonly origin: string;
  /** Undefined: none at all, `global` included. */
  readonly limits: Limits | undefined;
  /** The budget that all hosts of its site have together, beside what each may do: the same limits. */
  readonly together?: string;
  /** The budget that the policy has for them instead. */
  readonly scope?: ScopeRule;
}

/** A budget that hosts have together beside their own limits, which are others. */
export interface ScopeRule {
  readonly name: string;
  readonly limits: Limits;
}

const UNNAMED: Limits = { rate: "1/s" };
/** The origin of hosts that nothing limits. */
export const EXEMPT = "localhost";
const OFF: HostRule = { origin: EXEMPT, limits: undefined };
const IDLE: readonly string[] = ["intents", "maxWait", "maxQueue"];
/** A name below any domain that no policy is likely to have an entry for. */
const SOMEBODY = "no-such-name-7f3a";

/** Tells which limits of a policy apply to a key. The library itself says which entry it is; here it is only looked up. */
export class Rules {
  readonly #limiter;
  readonly #entries: ReadonlyMap<string, HostLimits>;
  readonly #rules = new Map<string, HostRule>();
  #collector: Rules | undefined;

  /** Throws `PolicyError` listing every problem of the policy. */
  constructor(readonly policy: PolicyInput) {
    // Keys are grouped already, and how many of them there are must not matter.
    this.#limiter = politely({ ...policy, groupBy: "host" }, { keepStats: 0, maxKeys: 100_000_000 });
    this.#entries = this.#named(policy);
  }

  /** The rule of a key. One that can be no host's name has the default limits. */
  of(key: string): HostRule {
    const origin = this.#originOf(key);
    if (origin === `presets.${collector.id}`) return this.#ofCollector(key);
    let rule = this.#rules.get(origin);
    if (rule === undefined) {
      rule =
        origin === OFF.origin ? OFF : { origin, limits: pacing(this.#limitsOf(origin)), ...this.#together(origin) };
      this.#rules.set(origin, rule);
    }
    return rule;
  }

  /** The limits over everything together; undefined where there are none. */
  get global(): Limits | undefined {
    const { global } = this.policy;
    return global === undefined || global.enabled === false ? undefined : pacing(global);
  }

  #originOf(key: string): string {
    try {
      return this.#limiter.explain(key).origin;
    } catch (error) {
      if (error instanceof TypeError) return "default";
      throw error;
    }
  }

  #limitsOf(origin: string): HostLimits {
    const entry = this.#entries.get(origin);
    if (entry !== undefined) return entry;
    const preset = origin.startsWith("presets.") ? findPreset(origin.slice("presets.".length)) : undefined;
    return preset?.limits ?? this.policy.default ?? UNNAMED;
  }

  /** What the hosts of a site have together, if it counts them as one. */
  #together(origin: string): Pick<HostRule, "together" | "scope"> {
    const id = origin.startsWith("presets.") ? origin.slice("presets.".length) : "";
    if (findPreset(id)?.countsTogether !== true) return {};
    const name = `preset:${id}`;
    const limits = this.policy.scopes?.[name];
    if (limits === undefined) return { together: name };
    return limits.enabled === false ? {} : { scope: { name, limits: pacing(limits) } };
  }

  /** The collector is a whole policy under one name, so its own entries tell its hosts apart. */
  #ofCollector(key: string): HostRule {
    this.#collector ??= new Rules(collector.policy);
    const { origin, limits } = this.#collector.of(key);
    return { origin: `presets.${collector.id} (${origin})`, limits };
  }

  /** The policy's own entries by the name the library gives them, which is not always how they are written. */
  #named({ hosts = {} }: PolicyInput): ReadonlyMap<string, HostLimits> {
    const entries = new Map<string, HostLimits>();
    for (const [text, limits] of Object.entries(hosts)) {
      const origin = this.#originOf(text.startsWith("*.") ? `${SOMEBODY}${text.slice(1)}` : text);
      // Of two ways to write one host the first counts.
      if (!entries.has(origin)) entries.set(origin, limits);
    }
    return entries;
  }
}

/**
 * What of some limits decides when requests start. Left out are those that only refuse: a plan waits as long as it takes.
 *
 * Intents are left out as well, since a URL names none.
 */
function pacing(limits: HostLimits): Limits {
  return Object.fromEntries(Object.entries(limits).filter(([name]) => !IDLE.includes(name)));
}
