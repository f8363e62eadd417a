import { readFileSync } from "node:fs";
import type { PolicyInput } from "politely";

/** The one host of the API. */
export const API_HOST = "api.inaturalist.org";

const USER_AGENT = "ObservationReader/1.0 (+https://example.com/about-this-reader)";

/** How the client behaves, read from its file. */
export interface Settings {
  /** Plain data, so that it can be handed to worker threads. */
  readonly policy: PolicyInput;
  readonly workerCount: number;
}

const DAY_SEC = 86_400;

/** Reads the settings, for callers with a token or without. Throws an `Error` that says which field of the file is wrong. */
export function loadSettings(file: string, isAuthenticated: boolean): Settings {
  try {
    const settings = objectOf(JSON.parse(readFileSync(file, "utf8")), "the file");
    const calls = objectOf(settings.calls_per_period, "calls_per_period");
    const who = isAuthenticated ? "authenticated" : "anonymous";
    const waitsSec = settings.waits_after_429_seconds;
    if (!Array.isArray(waitsSec) || waitsSec.length < 1 || waitsSec.length > 10) {
      throw new Error("waits_after_429_seconds must be a list of 1 to 10 numbers.");
    }
    const limits = {
      window: {
        count: whole(calls[who], `calls_per_period.${who}`, { least: 1, most: 100_000 }),
        per: milliseconds(settings.period_seconds, "period_seconds"),
      },
      // A call leaves the window a period after its answer: the site, too, never counts too many, however slow the way to it.
      countFrom: "answer",
      cooldown: waitsSec.map((wait) => milliseconds(wait, "waits_after_429_seconds")),
    } as const;
    const attempts = whole(settings.max_retries, "max_retries", { least: 0, most: 10 }) + 1;
    // A call that was refused is sent again when the cooldown is over: 2 ** attempt times the first wait.
    const http = { userAgent: USER_AGENT, retry: { attempts, delay: limits.cooldown[0] ?? 0, jitter: 0 } };
    const workerCount = whole(settings.workers, "workers", { least: 1, most: 32 });
    return { policy: { hosts: { [API_HOST]: limits }, http }, workerCount };
  } catch (error) {
    throw new Error(`The settings ${file} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

function objectOf(value: unknown, field: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Error(`${field} must be an object; got ${JSON.stringify(value)}.`);
}

function whole(
  value: unknown,
  field: string,
  { least, most }: { readonly least: number; readonly most: number },
): number {
  if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return Number(value);
  throw new Error(`${field} must be a whole number from ${least} to ${most}; got ${JSON.stringify(value)}.`);
}

function milliseconds(sec: unknown, field: string): number {
  if (typeof sec === "number" && sec >= 0.001 && sec <= DAY_SEC) return Math.round(sec * 1_000);
  throw new Error(`${field} must be 0.001 to ${DAY_SEC} seconds; got ${JSON.stringify(sec)}.`);
}
