import type { TraceEntry, TraceInstant } from "politely/testing";
import { broken, isObject, type Reading, retryAfterFields, skipped } from "./reading.js";
import { between, endInstant, epochInstant, isoInstant, millisecondsInstant } from "./stamps.js";

type Fields = Readonly<Record<string, unknown>>;

const urlNames = ["url", "request_url", "requestUrl", "uri", "href"];
const hostNames = ["host", "hostname", "domain", "vhost", "http_host", "server_name"];
const startNames = [
  "startedAt",
  "started_at",
  "startedDateTime",
  "start",
  "time",
  "timestamp",
  "@timestamp",
  "ts",
  "date",
];
const startMsNames = ["startedAtMs", "started_at_ms", "startMs", "timeMs", "timestampMs", "timestamp_ms"];
const tookMsNames = ["tookMs", "durationMs", "duration_ms", "elapsedMs", "elapsed_ms", "latencyMs", "latency_ms"];
const tookNames = ["duration", "elapsed", "latency", "responseTime", "response_time", "took"];
const tookSecondsNames = ["request_time", "time_taken_s", "durationSeconds", "duration_s"];
const endNames = ["endedAt", "ended_at", "finishedAt", "end"];
const statusNames = ["status", "statusCode", "status_code", "code"];
const headerNames = ["headers", "responseHeaders", "response_headers"];

/**
 * Reads a line of JSON: of our own index, or of any log with usual names.
 *
 * A line without a time that says what went wrong is of a request that was never sent, and is skipped.
 */
export function readJsonLine(text: string): Reading {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return broken("is not JSON");
  }
  if (!isObject(value)) return broken("is JSON, but no object");
  return isIndexLine(value) ? readIndexLine(value) : readAnyLine(value);
}

/** Tells whether a line is of the index that `politely get` writes. */
export function isIndexLine(value: unknown): boolean {
  return isObject(value) && ["url", "key", "outcome", "finalUrl"].every((name) => typeof value[name] === "string");
}

/** Each request that was made for a URL is a start: repetitions and redirects are listed under `earlier`, and the last one went to `finalUrl`. */
function readIndexLine(fields: Fields): Reading {
  const earlier = Array.isArray(fields.earlier) ? fields.earlier.filter(isObject) : [];
  const entries = earlier.flatMap((start) => {
    // Without the Date beside it, as in folders of earlier versions, a date would be judged by our clock and not by the site's.
    const [retryAfter, date] = [textOf(start.retryAfter), textOf(start.date)];
    const isUncertain = date === undefined && retryAfter !== undefined && /[A-Za-z]/.test(retryAfter);
    return requestOf(start, textOf(start.url), isUncertain ? {} : retryAfterFields(retryAfter, date));
  });
  const headers = isObject(fields.headers) ? fields.headers : {};
  const asked = retryAfterFields(headerOf(headers, "retry-after"), headerOf(headers, "date"));
  entries.push(...requestOf(fields, textOf(fields.finalUrl), asked));
  if (entries.length === 0) return skipped;
  const missing = typeof fields.attempt === "number" ? fields.attempt - entries.length : 0;
  if (missing <= 0) return { kind: "requests", entries };
  return { kind: "requests", entries, problem: `leaves out ${missing} of its ${entries.length + missing} requests` };
}

function requestOf(fields: Fields, url: string | undefined, asked: Partial<TraceEntry>): TraceEntry[] {
  const startedAtMs = startOf(fields);
  if (startedAtMs === undefined || url === undefined) return [];
  const tookMs = fields.tookMs;
  // A length below zero says nothing but that some clock was wrong.
  const times = typeof tookMs === "number" && tookMs >= 0 ? timesOf(startedAtMs, endInstant(startedAtMs, tookMs)) : {};
  return [{ url, startedAtMs, ...times, ...statusOf(fields), ...asked }];
}

function readAnyLine(fields: Fields): Reading {
  const request = firstObject(fields, ["request", "req"]);
  const response = firstObject(fields, ["response", "res"]);
  const target = targetOf(fields, request);
  if (target === undefined) return broken("has no url and no host");
  const startedAtMs = startOf(fields);
  if (startedAtMs === undefined) {
    if (typeof fields.error === "string" || isObject(fields.error)) return skipped;
    return broken("has no time that can be read (startedAt, time, timestamp, ts, …)");
  }
  const endedAtMs = endOf(fields, startedAtMs);
  const headers = headersIn(fields, headerNames) ?? headersIn(response ?? {}, ["headers"]) ?? {};
  const retryAfter = headerOf(headers, "retry-after") ?? textOf(fields.retryAfter) ?? textOf(fields.retry_after);
  const asked =
    typeof fields.retryAfterMs === "number"
      ? { retryAfterMs: fields.retryAfterMs }
      : retryAfterFields(retryAfter, headerOf(headers, "date"));
  const entry: TraceEntry = {
    ...target,
    startedAtMs,
    ...(endedAtMs === undefined ? {} : timesOf(startedAtMs, endedAtMs)),
    ...statusOf(response ?? {}),
    ...statusOf(fields),
    ...asked,
    ...(typeof fields.intent === "string" ? { intent: fields.intent } : {}),
    ...(Array.isArray(fields.scopes) ? { scopes: fields.scopes.filter((scope) => typeof scope === "string") } : {}),
    ...(typeof fields.cost === "number" ? { cost: fields.cost } : {}),
    ...(fields.unused === true ? { unused: true } : {}),
  };
  return { kind: "requests", entries: [entry] };
}

function targetOf(fields: Fields, request: Fields | undefined): Pick<TraceEntry, "url" | "host"> | undefined {
  const places = request === undefined ? [fields] : [fields, request];
  const url = places.map((place) => firstText(place, urlNames)).find((text) => text?.includes("://") === true);
  if (url !== undefined) return { url };
  const headers = firstObject(request ?? {}, ["headers"]) ?? {};
  const host = places.map((place) => firstText(place, hostNames)).find((text) => text !== undefined);
  const named = host ?? headerOf(headers, "host");
  return named === undefined ? undefined : { host: named };
}

/** An answer came at some time between start and end: headers come before the last byte. */
function timesOf(startedAtMs: TraceInstant, endedAtMs: TraceInstant): Pick<TraceEntry, "endedAtMs" | "answeredAtMs"> {
  return { endedAtMs, answeredAtMs: between(startedAtMs, endedAtMs) };
}

function startOf(fields: Fields): TraceInstant | undefined {
  const ms = firstNumber(fields, startMsNames);
  const stamp = startNames.map((name) => instantOf(fields[name])).find((instant) => instant !== undefined);
  // A small number is of a clock that begins with the process, and no two logs share it: a stamp beside it says more.
  if (ms !== undefined && (stamp === undefined || ms > 1e11)) return millisecondsInstant(ms);
  return stamp;
}

function endOf(fields: Fields, started: TraceInstant): TraceInstant | undefined {
  const seconds = firstNumber(fields, tookSecondsNames);
  const tookMs =
    firstNumber(fields, tookMsNames) ?? (seconds === undefined ? firstNumber(fields, tookNames) : seconds * 1000);
  if (tookMs !== undefined) return tookMs >= 0 ? endInstant(started, tookMs) : undefined;
  return endNames.map((name) => instantOf(fields[name])).find((instant) => instant !== undefined);
}

function instantOf(value: unknown): TraceInstant | undefined {
  if (typeof value === "number") return epochInstant(value);
  if (typeof value !== "string") return undefined;
  return isoInstant(value) ?? (/^\d{9,}(\.\d+)?$/.test(value) ? epochInstant(Number(value)) : undefined);
}

function statusOf(fields: Fields): Pick<TraceEntry, "status"> {
  const status = statusNames.map((name) => Number(fields[name])).find((code) => code >= 100 && code <= 999);
  return status === undefined ? {} : { status };
}

/** A record, or a list of pairs of name and value. */
function headersIn(fields: Fields, names: readonly string[]): Fields | undefined {
  for (const name of names) {
    const value = fields[name];
    if (isObject(value)) return value;
    if (Array.isArray(value)) return Object.fromEntries(value.filter(isPair));
  }
  return undefined;
}

function isPair(value: unknown): value is [string, unknown] {
  return Array.isArray(value) && typeof value[0] === "string";
}

function headerOf(headers: Fields, name: string): string | undefined {
  const key = Object.keys(headers).find((header) => header.toLowerCase() === name);
  const value = key === undefined ? undefined : headers[key];
  return textOf(Array.isArray(value) ? value[0] : value);
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

function firstText(fields: Fields, names: readonly string[]): string | undefined {
  const name = names.find((one) => typeof fields[one] === "string" && fields[one] !== "");
  return name === undefined ? undefined : (fields[name] as string);
}

function firstNumber(fields: Fields, names: readonly string[]): number | undefined {
  const name = names.find((one) => fields[one] !== "" && fields[one] !== null && Number.isFinite(Number(fields[one])));
  return name === undefined ? undefined : Number(fields[name]);
}

function firstObject(fields: Fields, names: readonly string[]): Fields | undefined {
  return names.map((name) => fields[name]).find(isObject);
}
