import { checkNames } from "../../core/checkNames.js";
import { showValue } from "../../policy/showValue.js";
import {
  flag,
  headerFields,
  headerValue,
  listUpTo,
  maxMs,
  milliseconds,
  numberWithin,
  oneOf,
  textUpTo,
  wholeNumber,
} from "./checks.js";
import { readAnswer, textBody } from "./readAnswer.js";
import { readLimit } from "./readLimit.js";
import type { AnswerRule, Behaviour, DelayRule, LatencyRule, RetryAfterRule } from "./rules.js";
import type {
  OriginAnswer,
  OriginBehaviour,
  OriginDelay,
  OriginLatency,
  OriginLimit,
  OriginQuotaHeaders,
  OriginRefusal,
  OriginRetryAfter,
} from "./types.js";

/** The fields of a behaviour, for a check of unknown names. */
export const behaviourNames: readonly string[] = [
  "limits",
  "refusal",
  "quotaHeaders",
  "answers",
  "pages",
  "robots",
  "latency",
  "travel",
  "headers",
  "wallSkewMs",
  "dateHeader",
];

const maxTextLength = 64 * 1_024 * 1_024;
const notFound: OriginAnswer = { status: 404, body: "Not found\n" };

/** Checks how a host behaves and fills in the defaults. `at` goes before the name of a field in a message. */
export function readBehaviour(at: string, behaviour: OriginBehaviour): Behaviour {
  const limits = listUpTo(`${at}limits`, behaviour.limits ?? [], 16) as readonly OriginLimit[];
  const latency = readLatency(`${at}latency`, behaviour.latency ?? 0);
  const { wallSkewMs = 0, dateHeader = true } = behaviour;
  return {
    limits: limits.map((limit, index) => readLimit(`${at}limits[${index}]`, limit)),
    refusal: readRefusal(`${at}refusal`, behaviour.refusal ?? {}, latency),
    quotaHeaders: readQuotaHeaders(`${at}quotaHeaders`, behaviour.quotaHeaders),
    answers: readAnswers(`${at}answers`, behaviour.answers ?? []),
    pages: readPages(at, behaviour),
    latency,
    travel: readDelay(`${at}travel`, behaviour.travel ?? 0),
    headers: headerFields(`${at}headers`, behaviour.headers),
    wallSkewMs: numberWithin(`${at}wallSkewMs`, wallSkewMs, { least: -maxMs, most: maxMs }),
    hasDate: flag(`${at}dateHeader`, dateHeader),
  };
}

function readRefusal(field: string, refusal: OriginRefusal, latency: LatencyRule): Behaviour["refusal"] {
  checkNames(refusal, ["status", "retryAfter", "latency", "body"], field);
  const { status = 429, body = "Too many requests\n" } = refusal;
  const statuses = typeof status === "number" ? [status] : listUpTo(`${field}.status`, status, 10_000);
  if (statuses.length === 0) throw new RangeError(`${field}.status must have at least one entry.`);
  const usual: LatencyRule = latency.kind === "queue" ? { kind: "fixed", ms: 0 } : latency;
  return {
    statuses: statuses.map((each) => wholeNumber(`${field}.status`, each, { least: 400, most: 599 })),
    retryAfter: readRetryAfter(`${field}.retryAfter`, refusal.retryAfter ?? "seconds"),
    latency: refusal.latency === undefined ? usual : readLatency(`${field}.latency`, refusal.latency),
    body: textBody(textUpTo(`${field}.body`, body, maxTextLength)),
  };
}

function readRetryAfter(field: string, retryAfter: OriginRetryAfter): RetryAfterRule {
  if (typeof retryAfter === "string") {
    const kind = oneOf(field, retryAfter, ["seconds", "date", "absent"]);
    return kind === "absent" ? undefined : { isDate: kind === "date", isTrue: true, times: 1, plusMs: 0 };
  }
  if (typeof retryAfter === "object" && retryAfter !== null && "text" in retryAfter) {
    checkNames(retryAfter, ["text"], field);
    return { text: headerValue(`${field}.text`, retryAfter.text) };
  }
  checkNames(retryAfter, ["as", "times", "plusMs"], field);
  const { as = "seconds", times = 1, plusMs = 0 } = retryAfter;
  return {
    isDate: oneOf(`${field}.as`, as, ["seconds", "date"]) === "date",
    isTrue: false,
    times: numberWithin(`${field}.times`, times, { least: 0, most: 1_000_000 }),
    plusMs: numberWithin(`${field}.plusMs`, plusMs, { least: -maxMs, most: maxMs }),
  };
}

function readQuotaHeaders(field: string, headers: OriginQuotaHeaders | undefined): Behaviour["quotaHeaders"] {
  if (headers === undefined) return undefined;
  checkNames(headers, ["families", "resetAs", "onlyRefusals"], field);
  const families = listUpTo(`${field}.families`, headers.families, 3);
  return {
    families: families.map((family) => oneOf(`${field}.families`, family, ["list", "triple", "x"])),
    resetAs: oneOf(`${field}.resetAs`, headers.resetAs ?? "delta", ["delta", "epoch", "epoch-ms"]),
    onlyRefusals: flag(`${field}.onlyRefusals`, headers.onlyRefusals ?? false),
  };
}

function readAnswers(field: string, answers: NonNullable<OriginBehaviour["answers"]>): Behaviour["answers"] {
  if (typeof answers === "function") return answers;
  const list = listUpTo(field, answers, 100_000) as readonly OriginAnswer[];
  return list.map((answer, index) => readAnswer(`${field}[${index}]`, answer));
}

function readPages(at: string, { pages = {}, robots }: OriginBehaviour): ReadonlyMap<string, AnswerRule> {
  const field = `${at}pages`;
  if (typeof pages !== "object" || pages === null) {
    throw new TypeError(`${field} must be an object of answers by path; got ${showValue(pages)}.`);
  }
  const entries = Object.entries(pages);
  if (entries.length > 10_000) throw new RangeError(`${field} must have at most 10000 entries; got ${entries.length}.`);
  const rules = new Map<string, AnswerRule>();
  const robotsPage: OriginAnswer =
    robots === undefined ? notFound : { body: textUpTo(`${at}robots`, robots, maxTextLength) };
  rules.set("/robots.txt", readAnswer(`${at}robots`, robotsPage));
  for (const [path, answer] of entries) {
    if (!path.startsWith("/"))
      throw new TypeError(`${field} must have paths that begin with "/"; got ${showValue(path)}.`);
    rules.set(path, readAnswer(`${field}[${showValue(path)}]`, answer));
  }
  return rules;
}

function readLatency(field: string, latency: OriginLatency): LatencyRule {
  if (typeof latency !== "object" || latency === null || latency.kind !== "queue") return readDelay(field, latency);
  checkNames(latency, ["kind", "service", "workers"], field);
  return {
    kind: "queue",
    service: readDelay(`${field}.service`, latency.service),
    workers: wholeNumber(`${field}.workers`, latency.workers, { least: 1, most: 1_000 }),
  };
}

function readDelay(field: string, delay: OriginDelay): DelayRule {
  if (typeof delay === "number") return { kind: "fixed", ms: milliseconds(field, delay) };
  if (typeof delay !== "object" || delay === null) {
    throw new TypeError(`${field} must be milliseconds or an object; got ${showValue(delay)}.`);
  }
  oneOf(`${field}.kind`, delay.kind, ["fixed", "uniform", "log-normal"]);
  switch (delay.kind) {
    case "fixed":
      checkNames(delay, ["kind", "ms"], field);
      return { kind: "fixed", ms: milliseconds(`${field}.ms`, delay.ms) };
    case "uniform": {
      checkNames(delay, ["kind", "minMs", "maxMs"], field);
      const least = milliseconds(`${field}.minMs`, delay.minMs);
      return {
        kind: "uniform",
        minMs: least,
        maxMs: numberWithin(`${field}.maxMs`, delay.maxMs, { least, most: maxMs }),
      };
    }
    case "log-normal": {
      checkNames(delay, ["kind", "medianMs", "sigma", "maxMs"], field);
      const medianMs = milliseconds(`${field}.medianMs`, delay.medianMs);
      const cutMs = delay.maxMs ?? Math.max(medianMs, 60_000);
      return {
        kind: "log-normal",
        medianMs,
        sigma: numberWithin(`${field}.sigma`, delay.sigma, { least: 0, most: 5 }),
        maxMs: numberWithin(`${field}.maxMs`, cutMs, { least: medianMs, most: maxMs }),
      };
    }
  }
}
