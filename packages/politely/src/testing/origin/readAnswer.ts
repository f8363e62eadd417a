import { checkNames } from "../../core/checkNames.js";
import { showValue } from "../../policy/showValue.js";
import { headerFields, headerValue, milliseconds, oneOf, textUpTo, wholeNumber } from "./checks.js";
import type { AnswerRule, BodyRule } from "./rules.js";
import type { OriginAnswer, OriginAnswerDetails, OriginFault } from "./types.js";

const faults: readonly OriginFault[] = ["reset", "timeout", "stall"];
const names = ["status", "headers", "body", "bodyMs", "etag", "redirect", "latencyMs", "fault"];

const maxTextLength = 64 * 1_024 * 1_024;
const maxFillerBytes = 1_024 * 1_024 * 1_024;
/** A slow body is pushed whether or not somebody reads, so it has to fit in memory. */
const maxSlowBytes = 16 * 1_024 * 1_024;

/** Statuses whose answer has no body. */
const bodiless: readonly number[] = [204, 205, 304];

/** Tells whether an answer of this status must not have a body. */
export function hasNoBody(status: number): boolean {
  return bodiless.includes(status);
}

/** Checks an answer. Throws `TypeError` or `RangeError` naming the field. */
export function readAnswer(field: string, answer: OriginAnswer): AnswerRule {
  if (typeof answer === "number") return readDetails(field, { status: answer });
  if (typeof answer === "string") return readDetails(field, { fault: oneOf(field, answer, faults) });
  if (typeof answer !== "object" || answer === null) {
    throw new TypeError(`${field} must be a status, a fault or an object; got ${showValue(answer)}.`);
  }
  checkNames(answer, names, field);
  return readDetails(field, answer);
}

/** Makes a body of text, in UTF-8. */
export function textBody(text: string): BodyRule {
  return { content: new TextEncoder().encode(text), sendMs: 0, type: "text/plain;charset=utf-8" };
}

function readDetails(field: string, details: OriginAnswerDetails): AnswerRule {
  const { redirect, etag, latencyMs, fault } = details;
  const status = details.status ?? (redirect === undefined ? 200 : 302);
  const own = headerFields(`${field}.headers`, details.headers);
  const location = redirect === undefined ? {} : { location: headerValue(`${field}.redirect`, redirect) };
  const tag = etag === undefined ? {} : { etag: headerValue(`${field}.etag`, etag) };
  return {
    status: wholeNumber(details.status === undefined ? field : `${field}.status`, status, { least: 200, most: 599 }),
    headers: { ...location, ...tag, ...own },
    body: readBody(field, details),
    etag,
    latencyMs: latencyMs === undefined ? undefined : milliseconds(`${field}.latencyMs`, latencyMs),
    fault: fault === undefined ? undefined : oneOf(`${field}.fault`, fault, faults),
  };
}

function readBody(field: string, { body, bodyMs = 0 }: OriginAnswerDetails): BodyRule | undefined {
  const sendMs = milliseconds(`${field}.bodyMs`, bodyMs);
  if (body === undefined) {
    if (sendMs > 0) throw new TypeError(`${field}.bodyMs needs a body to spread. Give ${field}.body too.`);
    return undefined;
  }
  const rule = { ...readContent(`${field}.body`, body), sendMs };
  const bytes = typeof rule.content === "number" ? rule.content : rule.content.length;
  if (sendMs > 0 && bytes > maxSlowBytes) {
    throw new RangeError(`${field}.body must have at most ${maxSlowBytes} bytes with bodyMs; got ${bytes}.`);
  }
  return rule;
}

function readContent(
  field: string,
  body: NonNullable<OriginAnswerDetails["body"]>,
): Pick<BodyRule, "content" | "type"> {
  if (typeof body === "string") return textBody(textUpTo(field, body, maxTextLength));
  // A copy, so that a test that goes on with its array does not change the site.
  if (body instanceof Uint8Array) return { content: body.slice(), type: "application/octet-stream" };
  checkNames(body, ["bytes"], field);
  const bytes = wholeNumber(`${field}.bytes`, body.bytes, { least: 0, most: maxFillerBytes });
  return { content: bytes, type: "text/plain;charset=utf-8" };
}
