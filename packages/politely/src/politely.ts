import type { Answer } from "./core/answer.js";
import { checkNames } from "./core/checkNames.js";
import { type LimiterParts, LocalLimiter } from "./engine/limiter.js";
import { systemClock } from "./engine/systemClock.js";
import { connectHttp, type MakeGate } from "./http/connectHttp.js";
import { exchangeOf, registerExchange } from "./http/exchange.js";
import type { Send } from "./http/fetch.js";
import { type HeaderReader, readStandardAnswer } from "./http/headers/answerHeaders.js";
import { outcomeIn, readOutcome } from "./http/outcome.js";
import { readAnswer } from "./http/readAnswer.js";
import { RobotsGate } from "./http/robotsGate.js";
import { keyLimiterOf } from "./keyLimiter.js";
import { Log } from "./observe/log.js";
import { compilePolicy, sameCounting } from "./policy/compile.js";
import { compileKeyPolicy } from "./policy/compileKey.js";
import { durationUs } from "./policy/duration.js";
import { showValue } from "./policy/showValue.js";
import type { CompiledPolicy, DomainLimits, Limits, PolicyInput } from "./policy/types.js";
import type { SharedKeyLimiter, SharedLimiter, SharedOptions } from "./sharedTypes.js";
import { type Create, type Front, type MakeFront, sharing } from "./sharing.js";
import type { KeyLimiter, Limiter, LimiterOptions, Outcome } from "./types.js";

/** Options that say how a store is used. */
const STORE_OPTIONS = ["name", "outage", "batch"];
const OPTIONS = ["clock", "logger", "messages", "maxKeys", "keepStats", "ageing", "random", "fetch", "store"];
/** Options that are objects or functions, and what they must be. */
const TYPED_OPTIONS = [
  ["messages", "object", "an object with a function for each line"],
  ["logger", "object", "an object with debug, info or warn"],
  ["random", "function", "a function"],
  ["fetch", "function", "a function"],
] as const;
const KEY = "limit";
const DAY_US = 86_400_000_000;

/** What limiters of hosts and of one key do not have in common. */
interface Kind {
  readonly compile: LimiterParts["compile"];
  /** Absent where no policy can ask for robots.txt: whoever bundles only that does not carry it. */
  readonly makeGate?: MakeGate;
  /** Reads what the headers of an answer ask for. Only that of many hosts knows the fields of vendors, which are a large table. */
  readonly readHeaders: HeaderReader;
}

/** Makes a limiter for any number of hosts, whose limits all processes with the same store share. Throws `PolicyError` listing every problem of the policy. */
export function politely(policy: PolicyInput | undefined, options: SharedOptions): SharedLimiter;
/** Makes a limiter for any number of hosts, with its state in this process. Throws `PolicyError` listing every problem of the policy. */
export function politely(policy?: PolicyInput, options?: LimiterOptions): Limiter;
export function politely(policy?: PolicyInput, options?: LimiterOptions | SharedOptions): Limiter | SharedLimiter {
  const compiled = compilePolicy(policy);
  const compile: Kind["compile"] = (input, before, known) => {
    const next = compilePolicy(input);
    sameCounting(before, next, known);
    return next;
  };
  const kind: Kind = { compile, makeGate: (exchange, send) => new RobotsGate(exchange, send), readHeaders: readAnswer };
  return isShared(options)
    ? sharing().limiter(options, (own, create) => makeLimiter(compiled, kind, own, create))
    : makeLimiter(compiled, kind, options, makeLocal);
}

/** Makes a limiter for one key, shared by all processes with the same store: the same verbs without a target. */
export function limit(limits: Limits | DomainLimits, options: SharedOptions): SharedKeyLimiter;
/** Makes a limiter for one key: the same verbs without a target. */
export function limit(limits: Limits | DomainLimits, options?: LimiterOptions): KeyLimiter;
export function limit(
  limits: Limits | DomainLimits,
  options?: LimiterOptions | SharedOptions,
): KeyLimiter | SharedKeyLimiter {
  // The verbs of a limiter speak of policies; for a single key a policy is just its limits.
  let next: Limits | DomainLimits = limits;
  const compile = (): CompiledPolicy => compileKeyPolicy(next, KEY);
  const change = (changed: Limits): void => {
    next = changed;
  };
  const kind: Kind = { compile, readHeaders: readStandardAnswer };
  if (isShared(options)) {
    const makeFront: MakeFront = (own, create) => makeLimiter(compile(), kind, own, create);
    return sharing().keyLimiter(options, KEY, makeFront, change);
  }
  const limiter = makeLimiter(compile(), kind, options, makeLocal);
  const keyLimiter = keyLimiterOf<KeyLimiter>(limiter, KEY, (changed) => {
    change(changed);
    limiter.configure({});
  });
  registerExchange(keyLimiter, exchangeOf(limiter, "limit"));
  return keyLimiter;
}

function makeLocal(parts: LimiterParts): LocalLimiter {
  return new LocalLimiter(parts);
}

function makeLimiter<Made extends Front>(
  policy: CompiledPolicy,
  { compile, makeGate, readHeaders }: Kind,
  options: Omit<LimiterOptions, "store"> = {},
  create: Create<Made>,
): Made {
  checkOptions(options);
  const { logger, keepStats = 100_000, maxKeys = 1_000_000 } = options;
  const clock = options.clock ?? systemClock();
  const random = options.random ?? Math.random;
  const told = new Set<string>();
  const log = logger === undefined ? undefined : new Log(logger, options.messages);
  const cut = new Set<string>();
  const readAnswerOf = (outcome: Outcome | undefined, key: string): Answer => {
    const mostUs = (): number => limiter.policy.hostRule(key).rule.maxRetryAfterUs ?? DAY_US;
    const onCut = (field: string, askedUs: number): void => {
      // Once for each of so many hosts.
      if (cut.has(key) || cut.size >= 10_000) return;
      cut.add(key);
      const message = `${field} asks to stay away for ${askedUs / 1e6} s; ${mostUs() / 1e6} s are kept (maxRetryAfter)`;
      limiter.tell({ type: "warn", key, message });
    };
    return readOutcome(outcome, { readHeaders, wallMs: () => clock.wall(), mostUs, onCut });
  };
  const limiter = create({
    clock,
    policy,
    compile,
    maxKeys,
    keepStats,
    ageingUs: options.ageing === undefined ? 10_000_000 : durationUs(options.ageing, "ageing"),
    random,
    readMaxWait: (value) => durationUs(value, "maxWait", { allowZero: true, allowInfinity: true }),
    readPause: (value) => durationUs(value, "duration", { allowInfinity: true }),
    readOutcome: readAnswerOf,
    outcomeIn,
    summarise,
    fetch: (input, init) => fetch(input, init),
    onDisabled: (key, why) => {
      if (log === undefined || told.size >= 100 || told.has(key)) return;
      told.add(key);
      log.disabled(key, why);
    },
  });
  const fetch = connectHttp(limiter, {
    clock,
    random,
    readOutcome: readAnswerOf,
    send: options.fetch as Send | undefined,
    makeGate,
  });
  if (log !== undefined) {
    limiter.subscribe(log.hear);
    limiter.tell({ type: "configure", key: "*", summary: summarise(policy) });
    limiter.announce();
  }
  return limiter;
}

/** The configuration in one line. */
function summarise(policy: CompiledPolicy): string {
  const { text, enabled } = policy.overflow.rule;
  const parts = Object.entries(text).flatMap(([name, written = []]) =>
    [written].flat().map((each) => `${name === "windows" ? "window" : name} ${each}`),
  );
  return `ready; default: ${enabled ? parts.join(", ") || "no limit" : "disabled"}`;
}

function isShared(options: LimiterOptions | SharedOptions | undefined): options is SharedOptions {
  return typeof options === "object" && options !== null && options.store !== undefined;
}

function checkOptions(options: Omit<LimiterOptions, "store">): void {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`options must be an object, as in { maxKeys: 1000 }, or left out; got ${String(options)}.`);
  }
  if ("store" in options && options.store === undefined) {
    throw new TypeError("store is undefined. Leave the field out for limits of this process only.");
  }
  checkNames(options, [...OPTIONS, ...STORE_OPTIONS], "options");
  // Those of a limiter with a store have been read before.
  const useless = STORE_OPTIONS.find((name) => name in options);
  if (useless !== undefined) {
    throw new TypeError(
      `${useless} is for limits that are kept in a store, and there is none. Write { store: redisStore(client), ${useless}: … }, or leave it out.`,
    );
  }
  checkCount(options.maxKeys, "maxKeys", 1);
  checkCount(options.keepStats, "keepStats", 0);
  for (const [name, type, what] of TYPED_OPTIONS) {
    const value: unknown = options[name];
    if (value === undefined || (typeof value === type && value !== null)) continue;
    throw new TypeError(`${name} must be ${what}; got ${showValue(value)}.`);
  }
  const { clock } = options;
  for (const method of ["now", "wall", "setTimer", "clearTimer"] as const) {
    if (clock === undefined || typeof clock?.[method] === "function") continue;
    throw new TypeError(`clock must be an object with now, wall, setTimer and clearTimer; ${method} is missing.`);
  }
}

function checkCount(value: number | undefined, name: string, least: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= 100_000_000)) return;
  throw new RangeError(`${name} must be a whole number from ${least} to 100,000,000; got ${String(value)}.`);
}
