import { readFileSync } from "node:fs";

/** What a request is for. A host may limit each of them on top of its own limits. */
export const intents = ["fetch", "search", "api"] as const;

/** One number or page to collect. */
export interface Datapoint {
  readonly name: string;
  readonly url: string;
  readonly intent: (typeof intents)[number];
}

const MAX_DATAPOINTS = 1_000;

/** Reads the list of what to collect. Throws an `Error` that says which entry is wrong. */
export function loadDatapoints(file: string): readonly Datapoint[] {
  const list = readJson(file);
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_DATAPOINTS) {
    throw new Error(`${file} must be a list of 1 to ${MAX_DATAPOINTS} datapoints.`);
  }
  const wrong = list.findIndex((entry) => !isDatapoint(entry));
  if (wrong >= 0) {
    throw new Error(
      `${file}: entry ${wrong + 1} must have a name, an http or https url, and an intent of ${intents.join(", ")}; got ${JSON.stringify(list[wrong])}.`,
    );
  }
  return list as readonly Datapoint[];
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new Error(`The list ${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

function isDatapoint(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { name, url, intent } = value as Partial<Record<string, unknown>>;
  const isUrl = typeof url === "string" && /^https?:\/\//.test(url) && URL.canParse(url);
  return typeof name === "string" && isUrl && intents.some((known) => known === intent);
}
