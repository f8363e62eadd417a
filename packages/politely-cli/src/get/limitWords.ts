import type { Limits, PolicyInput, Rate } from "politely";
import { findPreset } from "politely/presets";

/** What limits say, for people and as a number. */
export interface LimitWords {
  /** `"2/s, concurrency 4"`; `"no limit"`. */
  readonly text: string;
  /** Starts a second in the long run; absent where nothing but concurrency limits them. */
  readonly perSec?: number;
}

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  sec: 1_000,
  second: 1_000,
  m: 60_000,
  min: 60_000,
  minute: 60_000,
  h: 3_600_000,
  hour: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
};
const MONTH_MS = 30 * 86_400_000;

/** The limits of a host in words. `origin` is where they come from, as `explain` names it: `"hosts.example.com"`, `"presets.arxiv"`, `"default"`. */
export function limitWords(policy: PolicyInput, origin: string): LimitWords {
  const limits = limitsOf(policy, origin);
  if (limits === undefined || limits.enabled === false) return { text: "no limit" };
  const { minDelay, rate, burst, window, quota, concurrency } = limits;
  const windows: readonly Rate[] = window === undefined ? [] : Array.isArray(window) ? window : [window as Rate];
  const parts = [
    minDelay === undefined || minDelay === 0 ? [] : [`${durationWord(minDelay)} apart`],
    rate === undefined ? [] : [`${rateWord(rate)}${burst === undefined || burst === 1 ? "" : ` burst ${burst}`}`],
    windows.map((each) => `${rateWord(each)} window`),
    quota === undefined ? [] : [`${quota.count}/${quota.per} quota`],
    concurrency === undefined ? [] : [`concurrency ${concurrency}`],
  ].flat();
  const speeds = [
    minDelay === undefined || durationMs(minDelay) === 0 ? [] : [1_000 / durationMs(minDelay)],
    [...(rate === undefined ? [] : [rate]), ...windows].map(speedOf),
    quota === undefined ? [] : [(quota.count * 1_000) / (quota.per === "month" ? MONTH_MS : UNITS_MS[quota.per])],
  ].flat();
  const perSec = Math.min(...speeds);
  return {
    text: parts.length === 0 ? "no limit" : parts.join(", "),
    ...(Number.isFinite(perSec) && perSec > 0 ? { perSec } : {}),
  };
}

function limitsOf(policy: PolicyInput, origin: string): Limits | undefined {
  const [kind, ...rest] = origin.split(".");
  const name = rest.join(".");
  if (kind === "hosts") return policy.hosts?.[name];
  if (kind === "presets") return findPreset(name)?.limits;
  if (kind === "default") return policy.default ?? { rate: "1/s" };
  return undefined;
}

function rateWord(rate: Rate): string {
  return typeof rate === "string" ? rate : `${rate.count}/${durationWord(rate.per)}`;
}

function durationWord(duration: number | string): string {
  return typeof duration === "number" ? `${duration} ms` : duration;
}

function speedOf(rate: Rate): number {
  if (typeof rate !== "string") return (rate.count * 1_000) / durationMs(rate.per);
  const [count, per] = rate.split("/");
  return (Number(count) * 1_000) / durationMs(per.trim());
}

/** `"3s"`, `"min"`, `200`: in milliseconds; NaN for what is none. */
function durationMs(duration: number | string): number {
  if (typeof duration === "number") return duration;
  const [, count, unit] = /^([\d.]*)\s*([a-z]+)$/i.exec(duration.trim()) ?? [];
  return (count === "" ? 1 : Number(count)) * (UNITS_MS[unit] ?? Number.NaN);
}
