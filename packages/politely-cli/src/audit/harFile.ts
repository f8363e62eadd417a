import { WorkError } from "../errors.js";
import { broken, isObject, type Reading, retryAfterFields, skipped } from "./reading.js";
import { between, endInstant, isoInstant } from "./stamps.js";

/** Tells a HAR file, once parsed, from other JSON. */
export function isHar(value: unknown): boolean {
  return isObject(value) && isObject(value.log) && Array.isArray(value.log.entries);
}

/** Reads the entries of a HAR 1.2 file in order. Throws a `WorkError` for a file that is none. */
export function readHar(text: string, path: string): readonly unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new WorkError(`${path} is no HAR file: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isObject(value) || !isObject(value.log) || !Array.isArray(value.log.entries)) {
    throw new WorkError(`${path} is no HAR file: it has no log.entries`);
  }
  return value.log.entries;
}

/** Reads one entry. What came from a cache, or never left the browser (data: and the like), is skipped. */
export function readHarEntry(entry: unknown): Reading {
  if (!isObject(entry) || !isObject(entry.request)) return broken("has no request");
  const { url } = entry.request;
  if (typeof url !== "string") return broken("has no request.url");
  if (!/^(https?|wss?):/i.test(url) || typeof entry._fromCache === "string") return skipped;
  const startedAtMs = typeof entry.startedDateTime === "string" ? isoInstant(entry.startedDateTime) : undefined;
  if (startedAtMs === undefined) return broken("has no startedDateTime that is a time");
  const response = isObject(entry.response) ? entry.response : {};
  const tookMs = entry.time;
  const endedAtMs = typeof tookMs === "number" && tookMs >= 0 ? endInstant(startedAtMs, tookMs) : undefined;
  const status = typeof response.status === "number" && response.status >= 100 ? response.status : undefined;
  return {
    kind: "requests",
    entries: [
      {
        url,
        startedAtMs,
        ...(endedAtMs === undefined ? {} : { endedAtMs, answeredAtMs: between(startedAtMs, endedAtMs) }),
        ...(status === undefined ? {} : { status }),
        ...retryAfterFields(headerOf(response, "retry-after"), headerOf(response, "date")),
      },
    ],
  };
}

function headerOf(response: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const headers = Array.isArray(response.headers) ? response.headers.filter(isObject) : [];
  const header = headers.find((one) => typeof one.name === "string" && one.name.toLowerCase() === name);
  return typeof header?.value === "string" ? header.value : undefined;
}
