import { type LimiterParts, LocalLimiter } from "./engine/limiter.js";
import { checkNames } from "./engine/options.js";
import { systemClock } from "./engine/systemClock.js";
import { connectHttp, type MakeGate } from "./http/connectHttp.js";
import { exchangeOf, registerExchange } from "./http/exchange.js";
import type { Send } from "./http/fetch.js";
import { outcomeIn, readOutcome } from "./http/outcome.js";
import { readAnswer } from "./http/readAnswer.js";
import { RobotsGate } from "./http/robotsGate.js";
import { keyLimiterOf } from "./keyLimiter.js";
import { Log } from "./observe/log.js";
import { compilePolicy } from "./policy/compile.js";
import { compileKeyPolicy } from "./policy/compileKey.js";
import { sameCounting } from "./policy/counting.js";
import { durationUs } from "./policy/duration.js";
import { showValue } from "./policy/showValue.js";
import type { CompiledPolicy, Limits, PolicyInput } from "./policy/types.js";
import type { SharedKeyLimiter, SharedLimiter, SharedOptions } from "./sharedTypes.js";
import { type Front, type MakeFront, sharing } from "./sharing.js";
import type { KeyLimiter, Limiter, LimiterOptions } from "./types.js";

/** Options that say how a store is used. */
const STORE_OPTIONS = ["name", "outage", "batch"];
const KNOWN_OPTIONS = [
  "clock",
  "logger",
  "messages",
  "maxKeys",
  "keepStats",
  "ageing",
  "random",
  "fetch",
  "store",
  ...STORE_OPTIONS,
];
const KEY = "limit";

/** What limiters of hosts and of one key do not have in common. */
interface Kind {
  readonly compile: LimiterParts["compile"];
  /** Absent where no policy can ask for robots.txt: whoever bundles only that does not carry it. */
  readonly makeGate?: MakeGate;
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
  const kind: Kind = { compile, makeGate: (exchange, send) => new RobotsGate(exchange, send) };
  return isShared(options)
    ? sharing().limiter(options, (own, create) => makeLimiter(compiled, kind, own, create))
    : makeLimiter(compiled, kind, options, makeLocal);
}

/** Makes a limiter for one key, shared by all processes with the same store: the same verbs without a target. */
export function limit(limits: Limits, options: SharedOptions): SharedKeyLimiter;
/** Makes a limiter for one key: the same verbs without a target. */
export function limit(limits: Limits, options?: LimiterOptions): KeyLimiter;
export function limit(limits: Limits, options?: LimiterOptions | SharedOptions): KeyLimiter | SharedKeyLimiter {
  // The verbs of a limiter speak of policies; for a single key a policy is just its limits.
  let next = limits;
  const compile = (): CompiledPolicy => compileKeyPolicy(next, KEY);
  const change = (changed: Limits): void => {
    next = changed;
  };
  if (isShared(options)) {
    const makeFront: MakeFront = (own, create) => makeLimiter(compile(), { compile }, own, create);
    return sharing().keyLimiter(options, KEY, makeFront, change);
  }
  const limiter = makeLimiter(compile(), { compile }, options, makeLocal);
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
  { compile, makeGate }: Kind,
  options: Omit<LimiterOptions, "store"> = {},
  create: (parts: LimiterParts) => Made,
): Made {
  checkOptions(options);
  const { logger, keepStats = 100_000, maxKeys = 1_000_000 } = options;
  const clock = options.clock ?? systemClock();
  const random = options.random ?? Math.random;
  const told = new Set<string>();
  const log = logger === undefined ? undefined : new Log(logger, options.messages);
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
    readOutcome: (outcome) => readOutcome(outcome, readAnswer, () => clock.wall()),
    outcomeIn,
    summarise,
    fetch: (input, init) => fetch(input, init),
    onDisabled: (key, why) => {
      if (log === undefined || told.size >= 100 || told.has(key)) return;
      told.add(key);
      log.disabled(key, why);
    },
  });
  const fetch = connectHttp(limiter, { clock, random, send: options.fetch as Send | undefined, makeGate });
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
  const parts = [
    text.minDelay === undefined ? undefined : `minDelay ${text.minDelay}`,
    text.rate === undefined ? undefined : `rate ${text.rate}`,
    ...text.windows.map((window) => `window ${window}`),
    text.quota === undefined ? undefined : `quota ${text.quota}`,
    text.concurrency === undefined ? undefined : `concurrency ${text.concurrency}`,
  ].filter((part) => part !== undefined);
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
  checkNames(options, KNOWN_OPTIONS, "options");
  // Those of a limiter with a store have been read before.
  const useless = STORE_OPTIONS.find((name) => name in options);
  if (useless !== undefined) {
    throw new TypeError(
      `${useless} is for limits that are kept in a store, and there is none. Write { store: redisStore(client), ${useless}: … }, or leave it out.`,
    );
  }
  checkCount(options.maxKeys, "maxKeys", 1);
  checkCount(options.keepStats, "keepStats", 0);
  const { clock, random, logger, messages } = options;
  const fetch: unknown = options.fetch;
  if (messages !== undefined && (typeof messages !== "object" || messages === null)) {
    throw new TypeError(`messages must be an object with a function for each line; got ${String(messages)}.`);
  }
  if (logger !== undefined && (typeof logger !== "object" || logger === null)) {
    throw new TypeError(`logger must be an object with debug, info or warn; got ${String(logger)}.`);
  }
  if (random !== undefined && typeof random !== "function")
    throw new TypeError(`random must be a function; got ${String(random)}.`);
  if (fetch !== undefined && typeof fetch !== "function")
    throw new TypeError(`fetch must be a function; got ${showValue(fetch)}.`);
  for (const method of ["now", "wall", "setTimer", "clearTimer"] as const) {
    if (clock === undefined || typeof clock?.[method] === "function") continue;
    throw new TypeError(`clock must be an object with now, wall, setTimer and clearTimer; ${method} is missing.`);
  }
}

function checkCount(value: number | undefined, name: string, least: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= 100_000_000)) return;
  throw new RangeError(`${name} must be a whole number from ${least} to 100,000,000; got ${String(value)}.`);
}
