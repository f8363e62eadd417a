import type { Rule } from "../../core/rule.js";
import type { LimitKind } from "../../observe/types.js";
import { ALWAYS_US } from "../../shared/keyState.js";
import type { StopKind } from "../../shared/operation.js";
import { limitNumbers, sharedRuleOf } from "../../shared/ruleNumbers.js";
import type { Outlook } from "../counsel.js";
import type { Slowdowns } from "../slowdowns.js";
import { HORIZON_US } from "./plan.js";

/** What a store said stops a start, with its instants on this process's clock. */
export interface ToldStop {
  readonly kind: StopKind;
  /** When it ends, or is looked at again. */
  readonly atUs: number;
  readonly because: string;
}

/** What is needed to tell whose limit it is. */
export interface StopContext {
  /** The rule of this process for the key. */
  readonly rule: Rule;
  /** The row of the key, where what robots.txt and `adaptive` ask is known. */
  readonly slot: number;
  readonly slowdowns: Slowdowns;
  /** The name of the store when what stands in for it said so; undefined when it did itself. */
  readonly awayFrom: string | undefined;
  readonly nowUs: number;
}

/** What a stop is, for people: which limit, in whose words, and when it ends at the earliest. */
export type StopWords = Omit<Outlook, "index">;

const LIMITS: readonly StopKind[] = ["minDelay", "rate", "window", "quota", "concurrency"];

/**
 * Reads what a store said of a stop.
 *
 * A limit that this process has itself is named as its policy writes it. One that it does not have is named by the store's numbers, and whose it is: another
 * process's, or this process's part while the store is away. Where only an answer can end it, the instant is a lower bound.
 */
export function readStop(stop: ToldStop, context: StopContext): StopWords {
  const { kind, because } = stop;
  if (kind === "pause") return { limit: kind, atUs: stop.atUs, windowIndex: 0, because: "" };
  if (!LIMITS.includes(kind)) return { limit: kind, atUs: endOf(stop, context.nowUs), windowIndex: 0, because };
  if (kind === "minDelay" && because === "") return slowed(stop, context);
  const shared = sharedRuleOf(context.rule);
  const windowIndex = Math.max(0, ownWindow(shared.windows, because));
  const atUs = endOf(stop, context.nowUs);
  const isOwn = because === "" || because === limitNumbers(shared, kind, windowIndex);
  const whose = context.awayFrom === undefined ? " of another process's policy" : partOf(context.awayFrom);
  const words = isOwn ? undefined : limitWords(kind, because, whose);
  return { limit: kind, atUs, windowIndex, because: "", words };
}

/** When a pause that a store told of ends, on the timeline of the instants in `stop`; what it is told with is only when to look again. */
export function pauseEndUs({ readyUs, because }: { readonly readyUs: number; readonly because: string }): number {
  const untilUs = because === "" ? readyUs : Number(because);
  return untilUs >= ALWAYS_US ? Number.POSITIVE_INFINITY : untilUs;
}

/** The earliest end: now where an answer is waited for, and no later than one gap or window from now, since an answer may come at once. */
function endOf({ kind, atUs, because }: ToldStop, nowUs: number): number {
  if (kind === "concurrency" || kind === "probe") return nowUs;
  if ((kind !== "minDelay" && kind !== "window") || because === "") return atUs;
  return Math.min(atUs, nowUs + HORIZON_US + Number(because.split("/").at(-1)));
}

/** A gap beyond the policy, which robots.txt or `adaptive` ask for. */
function slowed({ atUs }: ToldStop, { slot, slowdowns }: StopContext): StopWords {
  const [robots, adaptive] = [slowdowns.get(slot, "robots"), slowdowns.get(slot, "adaptive")];
  const limit = (adaptive?.gapUs ?? 0) > (robots?.gapUs ?? 0) ? "adaptive" : "robots";
  const because = (limit === "adaptive" ? adaptive : robots)?.because;
  if (because !== undefined) return { limit, atUs, windowIndex: 0, because };
  return { limit: "minDelay", atUs, windowIndex: 0, because: "", words: "a gap between starts" };
}

function ownWindow(windows: readonly number[], because: string): number {
  for (let index = 0; index < windows.length; index += 3) {
    if (`${windows[index]}/${windows[index + 1]}` === because) return index / 3;
  }
  return -1;
}

function partOf(store: string): string {
  return `, this process's part while ${store} is away`;
}

function limitWords(kind: LimitKind, numbers: string, whose: string): string {
  if (kind === "quota") return `quota ${numbers.replace(" ", "/")}${whose}`;
  if (kind === "concurrency") return `concurrency ${numbers}${whose}, all in flight`;
  const [first, perUs, burst] = numbers.split("/").map(Number);
  if (kind === "minDelay") return `at least ${spanText(first)} between starts${whose}`;
  const isBurst = kind === "rate" && burst > 1;
  return `${kind} ${rateText(first, perUs)}${isBurst ? ` burst ${burst}` : ""}${whose}`;
}

const UNITS: readonly (readonly [number, string])[] = [
  [86_400_000_000, "d"],
  [3_600_000_000, "h"],
  [60_000_000, "min"],
  [1_000_000, "s"],
  [1_000, "ms"],
];

/** A rate as people write it: `"1/20s"`, `"100/s"`. */
function rateText(count: number, perUs: number): string {
  const inSecond = (count * 1_000_000) / perUs;
  if (perUs < 1_000_000 && Number.isInteger(inSecond)) return `${inSecond}/s`;
  const [amount, unit] = spanText(perUs).split(" ");
  return `${count}/${amount === "1" ? "" : amount}${unit}`;
}

function spanText(us: number): string {
  const [unitUs, unit] = UNITS.find(([each]) => us % each === 0) ?? [1_000, "ms"];
  return `${us / unitUs} ${unit}`;
}
