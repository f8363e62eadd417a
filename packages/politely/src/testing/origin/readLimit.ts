import { checkNames } from "../../core/checkNames.js";
import { readRate, readRefill, readWindow, type WrittenRate } from "../../policy/rate.js";
import { unwrap } from "../../policy/reading.js";
import { flag, headerValue, maxMs, numberWithin, oneOf, textUpTo, wholeNumber } from "./checks.js";
import { Concurrency } from "./limits/concurrency.js";
import { FixedWindow } from "./limits/fixedWindow.js";
import { LeakyBucket } from "./limits/leakyBucket.js";
import { PenaltyBox } from "./limits/penaltyBox.js";
import { SlidingWindow } from "./limits/slidingWindow.js";
import { TokenBucket } from "./limits/tokenBucket.js";
import type { LimitRule } from "./rules.js";
import type { OriginLimit } from "./types.js";

type LimitOf<Kind extends OriginLimit["kind"]> = Extract<OriginLimit, { kind: Kind }>;
type Make = LimitRule["make"];

const baseNames = ["kind", "name", "countBy", "afterCount", "status"];
const ownNames: Readonly<Record<OriginLimit["kind"], readonly string[]>> = {
  "leaky-bucket": ["rate", "burst", "nodelay", "delay"],
  concurrency: ["count"],
  "fixed-window": ["rate", "align"],
  "sliding-window": ["rate"],
  "token-bucket": ["rate", "burst"],
  "penalty-box": ["rate", "banMs", "lengthenMs", "maxBanMs", "counts"],
};
const kinds = Object.keys(ownNames) as OriginLimit["kind"][];

const maxCount = 1_000_000;
/** A log keeps every instant, so it is shorter. */
const maxLogged = 100_000;
const oneDayMs = 86_400_000;

/** Checks one limit of an origin. Throws `TypeError` or `RangeError` naming the field, `limits[0].rate` say. */
export function readLimit(field: string, limit: OriginLimit): LimitRule {
  if (typeof limit !== "object" || limit === null)
    throw new TypeError(`${field} must be an object; got ${String(limit)}.`);
  const kind = oneOf(`${field}.kind`, limit.kind, kinds);
  checkNames(limit, [...baseNames, ...ownNames[kind]], field);
  const { afterCount = 0, status } = limit;
  return {
    name: readName(`${field}.name`, limit.name ?? kind),
    header: readHeader(`${field}.countBy`, limit.countBy),
    afterCount: wholeNumber(`${field}.afterCount`, afterCount, { least: 0, most: maxCount }),
    status: status === undefined ? undefined : wholeNumber(`${field}.status`, status, { least: 400, most: 599 }),
    make: readKind(field, limit),
  };
}

function readName(field: string, value: unknown): string {
  const name = textUpTo(field, value, 64);
  // What a quoted string of a structured field can carry without escapes.
  if (!/^[ !#-[\]-~]+$/.test(name)) {
    throw new TypeError(
      `${field} must be printable ASCII without quotes and backslashes; got ${JSON.stringify(name)}.`,
    );
  }
  return name;
}

function readHeader(field: string, countBy: OriginLimit["countBy"]): string | undefined {
  if (countBy === undefined || countBy === "host") return undefined;
  checkNames(countBy, ["header"], field);
  const name = textUpTo(`${field}.header`, countBy.header, 256);
  headerValue(`${field}.header`, "x", name);
  return name.toLowerCase();
}

function readKind(field: string, limit: OriginLimit): Make {
  switch (limit.kind) {
    case "leaky-bucket":
      return readLeakyBucket(field, limit);
    case "concurrency": {
      const count = wholeNumber(`${field}.count`, limit.count, { least: 1, most: maxCount });
      return () => new Concurrency(count);
    }
    case "fixed-window": {
      const { count, perUs } = windowOf(`${field}.rate`, limit.rate, maxCount);
      const isAligned = oneOf(`${field}.align`, limit.align ?? "wall", ["wall", "first"]) === "wall";
      return (wallOffsetUs) => new FixedWindow({ count, perUs, wallOffsetUs: isAligned ? wallOffsetUs : undefined });
    }
    case "sliding-window": {
      const rule = windowOf(`${field}.rate`, limit.rate, maxLogged);
      return () => new SlidingWindow(rule);
    }
    case "token-bucket":
      return readTokenBucket(field, limit);
    case "penalty-box":
      return readPenaltyBox(field, limit);
  }
}

function readLeakyBucket(field: string, limit: LimitOf<"leaky-bucket">): Make {
  const { count, perUs } = rateOf(`${field}.rate`, limit.rate);
  const ratePerSecond = Number((count.top * 1_000_000_000n) / (count.bottom * BigInt(perUs)));
  if (ratePerSecond < 1 || ratePerSecond > 1_000_000_000) {
    throw new RangeError(
      `${field}.rate must be from 0.001 to 1,000,000 a second, which is what nginx can count; got ${ratePerSecond / 1_000}.`,
    );
  }
  const burst = wholeNumber(`${field}.burst`, limit.burst ?? 0, { least: 0, most: maxCount }) * 1_000;
  const isHeldBack = !flag(`${field}.nodelay`, limit.nodelay ?? false);
  if (!isHeldBack && limit.delay !== undefined) {
    throw new TypeError(`${field}.delay makes no sense with nodelay: true. Leave one of them out.`);
  }
  const delay = wholeNumber(`${field}.delay`, limit.delay ?? 0, { least: 0, most: maxCount }) * 1_000;
  return () => new LeakyBucket({ ratePerSecond, burst, delay: isHeldBack ? delay : Number.POSITIVE_INFINITY });
}

function readTokenBucket(field: string, limit: LimitOf<"token-bucket">): Make {
  const { rateCount: count, ratePerUs: perUs } = unwrap(
    readRefill(rateOf(`${field}.rate`, limit.rate)),
    `${field}.rate`,
  );
  const burst = wholeNumber(`${field}.burst`, limit.burst ?? 1, { least: 1, most: maxCount });
  if ((burst + 1) * perUs > Number.MAX_SAFE_INTEGER) {
    throw new RangeError(`${field}.burst is too large for so slow a rate: ${burst} tokens of ${perUs} microseconds.`);
  }
  return () => new TokenBucket({ count, perUs, burst });
}

function readPenaltyBox(field: string, limit: LimitOf<"penalty-box">): Make {
  const { count, perUs } = windowOf(`${field}.rate`, limit.rate, maxLogged);
  const range = { least: 1, most: maxMs };
  const banMs = numberWithin(`${field}.banMs`, limit.banMs, range);
  const lengthenMs = numberWithin(`${field}.lengthenMs`, limit.lengthenMs ?? banMs, { least: 0, most: maxMs });
  const maxBanMs = numberWithin(`${field}.maxBanMs`, limit.maxBanMs ?? Math.max(banMs, oneDayMs), {
    least: banMs,
    most: maxMs,
  });
  const countsRefusals = oneOf(`${field}.counts`, limit.counts ?? "arrivals", ["arrivals", "refusals"]) === "refusals";
  const banUs = Math.ceil(banMs * 1_000);
  const lengthenUs = Math.ceil(lengthenMs * 1_000);
  const maxBanUs = Math.ceil(maxBanMs * 1_000);
  return () => new PenaltyBox({ count, perUs, banUs, lengthenUs, maxBanUs, countsRefusals });
}

function rateOf(field: string, value: unknown): WrittenRate {
  return unwrap(readRate(value), field);
}

function windowOf(field: string, value: unknown, most: number): { readonly count: number; readonly perUs: number } {
  const { count, perUs } = unwrap(readWindow(rateOf(field, value)), field);
  if (count > most) throw new RangeError(`${field} must count at most ${most} in its time; got ${count}.`);
  return { count, perUs };
}
