import type { Limits, PolicyInput, Rate } from "politely";

/** The limits that can be edited, as a person writes them; empty means none. */
export interface LimitFields {
  readonly rate: string;
  readonly burst: string;
  readonly minDelay: string;
  /** Several are separated by commas. */
  readonly window: string;
  readonly concurrency: string;
}

/** What the policy says of a host whose limits come from `origin`. A preset is not in the policy: nothing is known of it here. */
export function limitsInForce({ hosts = {}, default: usual }: PolicyInput, domain: string, origin: string): Limits {
  const entry = (key: string): Limits | undefined =>
    Object.entries(hosts).find(([written]) => written === key || keyOf(written) === key)?.[1];
  const own = entry(domain);
  if (own !== undefined) return own;
  if (origin.startsWith("hosts.")) return entry(origin.slice("hosts.".length)) ?? {};
  return origin === "default" ? (usual ?? { rate: "1/s" }) : {};
}

/** The key of a host or pattern as a policy file writes it: lower case, ASCII, no dot at the end. */
function keyOf(written: string): string {
  const [, host, port = ""] = /^(.*?)\.?(:\d+)?$/.exec(written) ?? [];
  const url = `http://${host}`;
  return URL.canParse(url) ? `${new URL(url).hostname}${port}` : written;
}

/** Limits as the form shows them. */
export function fieldsOf({ rate, burst, minDelay, window, concurrency }: Limits): LimitFields {
  const windows = window === undefined ? [] : Array.isArray(window) ? (window as readonly Rate[]) : [window as Rate];
  return {
    rate: rate === undefined ? "" : rateField(rate),
    burst: burst === undefined ? "" : String(burst),
    minDelay: minDelay === undefined || minDelay === 0 ? "" : durationField(minDelay),
    window: windows.map(rateField).join(", "),
    concurrency: concurrency === undefined ? "" : String(concurrency),
  };
}

/**
 * The limits that the form stands for. What it does not show, cooldowns say, stays as in `known`. Texts are checked by the service; a number that is none is a
 * `RangeError` here.
 */
export function limitsFrom(fields: LimitFields, known: Limits): Record<string, unknown> {
  const windows = fields.window.split(",").map(trimmed).filter(Boolean);
  const edited: Record<string, unknown> = {
    ...known,
    rate: trimmed(fields.rate) || undefined,
    burst: count("Burst", fields.burst),
    minDelay: trimmed(fields.minDelay) || undefined,
    window: windows.length === 0 ? undefined : windows.length === 1 ? windows[0] : windows,
    concurrency: count("At once", fields.concurrency),
  };
  // A burst is a property of the rate.
  if (edited.rate === undefined) edited.burst = undefined;
  return Object.fromEntries(Object.entries(edited).filter(([, value]) => value !== undefined));
}

function count(name: string, text: string): number | undefined {
  if (trimmed(text) === "") return undefined;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new RangeError(`${name} must be a whole number from 1; got ${text.trim()}.`);
  return value;
}

function rateField(rate: Rate): string {
  return typeof rate === "string" ? rate : `${rate.count}/${durationField(rate.per)}`;
}

function durationField(duration: number | string): string {
  return typeof duration === "number" ? `${duration}ms` : duration;
}

function trimmed(text: string): string {
  return text.trim();
}
