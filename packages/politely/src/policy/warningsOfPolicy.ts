import type { PolicyProblem } from "../errors.js";
import { readDuration } from "./duration.js";
import { findPreset } from "./presets/index.js";
import { readRate, readRefill } from "./rate.js";
import { unwrap } from "./reading.js";
import type { HostLimits, HostRule, HttpPolicy, Limits, PolicyInput, PolicyWarning } from "./types.js";
import { fieldPath, keyPath } from "./validate.js";

const NEEDS_STORE = "has an effect only with a store";

/** What an entry may have besides a pace, in the order in which it is told. */
const otherLimits = ["concurrency", "intents", "backoff", "cooldown", "maxWait", "maxQueue", "maxHold"] as const;

/**
 * Points out what is allowed and still worth a look in a policy that was found valid.
 *
 * `replacedBy` gives the rule that would be there without an entry of `hosts`, by the key of the entry as it is written.
 */
export function warningsOfPolicy(
  input: PolicyInput,
  replacedBy: (hostKey: string) => HostRule,
): readonly PolicyWarning[] {
  const warnings: PolicyWarning[] = [];
  const look = (limits: Limits | undefined, path: string): void => {
    if (limits !== undefined) warnings.push(...warningsOfLimits(limits, path));
  };
  look(input.default, "default");
  for (const [host, limits] of Object.entries(input.hosts ?? {})) {
    const path = keyPath("hosts", host);
    look(limits, path);
    warnings.push(...warningsOfLostPace(limits, path, replacedBy(host)));
    for (const [intent, intentLimits] of Object.entries(limits.intents ?? {})) {
      look(intentLimits, keyPath(fieldPath(path, "intents"), intent));
    }
  }
  look(input.global, "global");
  for (const [scope, limits] of Object.entries(input.scopes ?? {})) look(limits, keyPath("scopes", scope));
  warnings.push(...warningsOfPresets(input.presets));
  if (input.http !== undefined) warnings.push(...warningsOfHttp(input.http));
  return warnings;
}

/** Points out the same in the limits of one entry: a burst that holds more than a minute of its rate, and fields without effect. */
export function warningsOfLimits(limits: Limits, path: string): readonly PolicyWarning[] {
  const warnings: PolicyWarning[] = [...warningsOfBurst(limits, path)];
  if (limits.permitTtl !== undefined)
    warnings.push({ path: fieldPath(path, "permitTtl"), message: NEEDS_STORE, isForStore: true });
  return warnings;
}

/** A robots.txt can only be obeyed in somebody's name. */
function warningsOfHttp({ robots, userAgent }: HttpPolicy): readonly PolicyProblem[] {
  if (robots === true && userAgent !== undefined && /^mozilla\b/i.test(userAgent)) {
    const message =
      'looks for rules for "Mozilla", the first word of userAgent; name your program in http.robots.userAgent';
    return [{ path: "http.robots", message }];
  }
  const isNamed = userAgent !== undefined || (typeof robots === "object" && robots.userAgent !== undefined);
  if (robots === undefined || robots === false || isNamed) return [];
  const message = "has no userAgent to look for, so that only the rules for everybody count; set http.userAgent";
  return [{ path: "http.robots", message }];
}

function warningsOfBurst({ rate, burst = 1 }: Limits, path: string): readonly PolicyProblem[] {
  if (rate === undefined || burst === 1) return [];
  const written = unwrap(readRate(rate), "rate");
  const { rateCount, ratePerUs } = unwrap(readRefill(written), "rate");
  if (BigInt(burst) * BigInt(ratePerUs) <= BigInt(rateCount) * 60_000_000n) return [];
  const message = `should be at most what the rate ${written.text} gives in 60 s; got ${burst}. A site may take such a burst for an attack`;
  return [{ path: fieldPath(path, "burst"), message }];
}

/** An entry is not merged with what it replaces, so a host that is only given a `concurrency` is no longer paced. */
function warningsOfLostPace(limits: HostLimits, path: string, replaced: HostRule): readonly PolicyProblem[] {
  if (limits.enabled === false || hasPace(limits) || !isPaced(replaced)) return [];
  const what = replaced.origin === "default" ? "the default" : replaced.origin;
  const others = otherLimits.filter((name) => limits[name] !== undefined);
  const rest = others.length === 0 ? "nothing limits it" : `only ${others.join(", ")}`;
  return [{ path, message: `replaces ${what} whole and has no pace of its own: ${rest}; add rate or window` }];
}

function hasPace({ minDelay = 0, rate, window, quota, adaptive }: Limits): boolean {
  const gapUs = unwrap(readDuration(minDelay, { allowZero: true }), "minDelay");
  const hasMost = typeof adaptive === "object" && adaptive.max !== undefined;
  return hasMost || gapUs > 0 || rate !== undefined || window !== undefined || quota !== undefined;
}

function isPaced({ rule }: HostRule): boolean {
  return rule.gapUs > 0 || rule.rateCount > 0 || rule.windows.length > 0 || rule.quota !== undefined;
}

function warningsOfPresets(names: PolicyInput["presets"]): readonly PolicyProblem[] {
  if (names === undefined || names === true) return [];
  return names
    .filter((name) => findPreset(name)?.hosts.length === 0)
    .map((name) => ({
      path: "presets",
      message: `"${name}" is software that runs on many hosts, so it applies to none by itself; copy its limits to the hosts you call`,
    }));
}
