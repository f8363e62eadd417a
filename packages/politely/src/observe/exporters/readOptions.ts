import type { TokensOf } from "./measured.js";

const MAX_HOSTS_MOST = 10_000;

/** The number of labels, or the default; throws `TypeError` or `RangeError` for another. */
export function readMaxHosts(value: number | undefined, byDefault: number): number {
  if (value === undefined) return byDefault;
  if (Number.isInteger(value) && value >= 0 && value <= MAX_HOSTS_MOST) return value;
  const message = `maxHosts must be a whole number from 0 to ${MAX_HOSTS_MOST}; got ${String(value)}.`;
  throw typeof value === "number" ? new RangeError(message) : new TypeError(message);
}

/** What asks for tokens; throws `TypeError` for what is no function. */
export function readTokensOf(value: TokensOf | undefined): TokensOf | undefined {
  if (value === undefined || typeof value === "function") return value;
  throw new TypeError(`tokensOf must be a function of a host; got ${typeof value}.`);
}

/** Throws `TypeError` for what is no limiter. */
export function checkLimiter(limiter: unknown): void {
  const { stats, subscribe } = (limiter ?? {}) as { readonly stats?: unknown; readonly subscribe?: unknown };
  if (typeof stats === "function" && typeof subscribe === "function") return;
  throw new TypeError("limiter must be what politely() or limit() returned: it has no stats and subscribe.");
}

const BOUNDS_MOST = 50;

/** Upper bounds of a histogram, or the default; throws `RangeError` unless they are positive, finite and rising. */
export function readBounds(
  value: readonly number[] | undefined,
  name: string,
  byDefault: readonly number[],
): readonly number[] {
  if (value === undefined) return byDefault;
  const isRising = value.every((bound, index) => Number.isFinite(bound) && bound > (value[index - 1] ?? 0));
  if (value.length > 0 && value.length <= BOUNDS_MOST && isRising) return [...value];
  throw new RangeError(
    `${name} must be 1 to ${BOUNDS_MOST} rising numbers of seconds above 0; got [${value.join(", ")}].`,
  );
}

const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
/** Names that series have already, or that Prometheus keeps for itself. */
const LABELS_TAKEN = ["host", "code", "result", "le"];

/** Labels for every series; throws `RangeError` for a name that cannot be one. */
export function readLabels(value: Readonly<Record<string, string>> | undefined): [string, string][] {
  return Object.entries(value ?? {}).map(([name, text]) => {
    if (!LABEL_NAME.test(name) || name.startsWith("__") || LABELS_TAKEN.includes(name)) {
      throw new RangeError(
        `labels: "${name}" cannot be a label. Letters, digits and _ can; ${LABELS_TAKEN.join(", ")} are taken.`,
      );
    }
    if (typeof text !== "string") throw new TypeError(`labels.${name} must be a text; got ${String(text)}.`);
    return [name, text];
  });
}
