import { readFileSync } from "node:fs";

/** One site of the config file. */
export interface Site {
  readonly name: string;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** The least time between two requests. 0 means none. */
  readonly waitMs: number;
  readonly paths: readonly string[];
  readonly userAgent: string;
}

const MAX_PATHS = 10_000;
const MAX_WAIT_SEC = 3_600;

/** Reads the site called `name` from a config file. Throws an `Error` that says which field is wrong and what it should be. */
export function loadSite(file: string, name: string): Site {
  const config = objectOf(readJson(file), file);
  const sites = objectOf(config.sites, `${file}: sites`);
  if (!Object.hasOwn(sites, name)) {
    throw new Error(`${file} has no site "${name}". It has: ${Object.keys(sites).join(", ")}.`);
  }
  const place = `${file}: sites.${name}`;
  const { base_url, wait_time, paths } = objectOf(sites[name], place);
  if (typeof wait_time !== "number" || !(wait_time >= 0 && wait_time <= MAX_WAIT_SEC)) {
    throw new Error(`${place}.wait_time must be 0 to ${MAX_WAIT_SEC} seconds; got ${JSON.stringify(wait_time)}.`);
  }
  if (!Array.isArray(paths) || paths.length === 0 || paths.length > MAX_PATHS || !paths.every(isPath)) {
    throw new Error(`${place}.paths must be a list of 1 to ${MAX_PATHS} texts, each beginning with "/".`);
  }
  const { user_agent } = config;
  if (typeof user_agent !== "string" || user_agent === "") {
    throw new Error(`${file}: user_agent must say who is calling; got ${JSON.stringify(user_agent)}.`);
  }
  const baseUrl = readBaseUrl(base_url, `${place}.base_url`);
  return { name, baseUrl, waitMs: Math.round(wait_time * 1_000), paths, userAgent: user_agent };
}

/** Reads an address of the web, and drops the slash at its end. Throws an `Error` that names `place`. */
export function readBaseUrl(value: unknown, place: string): string {
  if (typeof value !== "string" || !URL.canParse(value) || !/^https?:\/\/[^?#]+$/i.test(value)) {
    throw new Error(`${place} must be a URL with http or https, without ? and #; got ${JSON.stringify(value)}.`);
  }
  return value.replace(/\/$/, "");
}

function isPath(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("/") && !value.startsWith("//");
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new Error(`The config ${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

function objectOf(value: unknown, place: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error(`${place} must be an object; got ${JSON.stringify(value)}.`);
  }
  return value as Record<string, unknown>;
}
