import { readDuration } from "./duration.js";
import { sites } from "./presets/sites.js";
import { readRate, readRefill } from "./rate.js";
import { unwrap } from "./reading.js";
import type { HostLimits, HostRule, HttpPolicy, Limits, PolicyInput, PolicyWarning } from "./types.js";
import { fieldPath, keyPath } from "./validate.js";

/** What an entry may have besides a pace, in the order in which it is told. */
const otherLimits = ["concurrency", "intents", "backoff", "cooldown", "maxWait", "maxQueue", "maxHold"] as const;

/**
 * Points out what is allowed and still worth a look in a policy that was found valid.
 *
 * `replacedBy` gives the rule that would be there without an entry of `hosts`, by the key of the entry as it is written.
 */
export function warningsOfPolicy(
  { default: fallback, hosts = {}, global, scopes = {}, presets = [], http = {} }: PolicyInput,
  replacedBy: (hostKey: string) => HostRule,
): readonly PolicyWarning[] {
  return [
    ...warningsOfLimits(fallback, "default"),
    ...Object.entries(hosts).flatMap(([host, limits]) => {
      const path = keyPath("hosts", host);
      const intents = Object.entries(limits.intents ?? {});
      return [
        ...warningsOfLimits(limits, path),
        ...warningsOfLostPace(limits, path, replacedBy(host)),
        ...intents.flatMap(([name, own]) => warningsOfLimits(own, keyPath(fieldPath(path, "intents"), name))),
      ];
    }),
    ...warningsOfLimits(global, "global"),
    ...Object.entries(scopes).flatMap(([scope, limits]) => warningsOfLimits(limits, keyPath("scopes", scope))),
    ...sites
      .filter(({ id, hosts: known }) => known.length === 0 && presets !== true && presets.includes(id))
      .map(({ id }) => ({
        path: "presets",
        message: `"${id}" is software that runs on many hosts, so it applies to none by itself; copy its limits to the hosts you call`,
      })),
    ...warningsOfRobots(http),
  ];
}

/** Points out the same in the limits of one entry: a burst that holds more than a minute of its rate, and fields without effect. */
export function warningsOfLimits(limits: Limits = {}, path: string): readonly PolicyWarning[] {
  const { rate, burst = 1, permitTtl } = limits;
  const warnings: PolicyWarning[] = [];
  if (rate !== undefined && burst > 1) {
    const written = unwrap(readRate(rate), "rate");
    const { rateCount, ratePerUs } = unwrap(readRefill(written), "rate");
    const message = `should be at most what the rate ${written.text} gives in 60 s; got ${burst}. A site may take such a burst for an attack`;
    const isLong = BigInt(burst) * BigInt(ratePerUs) > BigInt(rateCount) * 60_000_000n;
    if (isLong) warnings.push({ path: fieldPath(path, "burst"), message });
  }
  const message = "has an effect only with a store";
  if (permitTtl !== undefined) warnings.push({ path: fieldPath(path, "permitTtl"), message, isForStore: true });
  return warnings;
}

/** A robots.txt can only be obeyed in somebody's name. */
function warningsOfRobots({ robots, userAgent }: HttpPolicy): readonly PolicyWarning[] {
  const isNamed = typeof robots === "object" && robots.userAgent !== undefined;
  if (robots === undefined || robots === false || isNamed) return [];
  const path = "http.robots";
  if (userAgent === undefined) {
    return [
      { path, message: "has no userAgent to look for, so that only the rules for everybody count; set http.userAgent" },
    ];
  }
  const message =
    'looks for rules for "Mozilla", the first word of userAgent; name your program in http.robots.userAgent';
  return robots === true && /^mozilla\b/i.test(userAgent) ? [{ path, message }] : [];
}

/** An entry is not merged with what it replaces, so a host that is only given a `concurrency` is no longer paced. */
function warningsOfLostPace(limits: HostLimits, path: string, replaced: HostRule): readonly PolicyWarning[] {
  const { gapUs, rateCount, windows, quota } = replaced.rule;
  const wasPaced = gapUs > 0 || rateCount > 0 || windows.length > 0 || quota !== undefined;
  if (limits.enabled === false || hasPace(limits) || !wasPaced) return [];
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
