import { countText, durationText } from "../words.js";
import type { HostPlan, Plan } from "./plan.js";

const DAY_MS = 86_400_000;
/** From here on a plan is told in years, and no date is given. */
const YEARS_MS = 2 * 365 * DAY_MS;
/** What `get` keeps to by default: more at once is worth a word. */
const MANY_IN_FLIGHT = 32;

/** When a plan ends, in one sentence. */
export function endText(plan: Plan, wallMs: number): string {
  const hosts = plan.hosts.length;
  const what = `${countText(plan.requests)} ${plural("request", plan.requests)} to ${countText(hosts)} ${plural("host", hosts)}`;
  const date = plan.durationMs < YEARS_MS ? `, ${momentText(wallMs + plan.durationMs, plan.durationMs)}` : "";
  return `${what}: done in ${durationText(plan.durationMs)}${date}.`;
}

/** What holds a host back, with where its limits come from: `rate 1/s (default)`. */
export function bindingText({ binds, origin }: HostPlan): string {
  if (binds === undefined) return `nothing (${origin})`;
  return binds.scope === "global" ? `global ${binds.text}` : `${binds.text} (${binds.origin ?? origin})`;
}

/** Which host is done last and what would help, in a few sentences; none for an empty plan. */
export function longPoleText(plan: Plan): string[] {
  const [pole] = plan.hosts;
  const { longPole } = plan;
  if (pole === undefined || longPole === undefined) return [];
  const others =
    longPole.ties === 0 ? "" : `, together with ${countText(longPole.ties)} ${plural("other", longPole.ties)}`;
  const what =
    pole.binds === undefined
      ? "No limit makes it wait."
      : `What it waits for: ${bindingText(pole)}${pole.binds.scope === "global" ? ", which all hosts share" : ""}.`;
  return [`Long pole: ${pole.key}${others}. ${what}`, ...whatIfText(plan)];
}

function whatIfText({ longPole }: Plan): string[] {
  const whatIf = longPole?.whatIf;
  if (longPole === undefined || whatIf === undefined) return [];
  const where = whatIf.scope === "global" ? "for all hosts together" : `at ${longPole.key}`;
  const about = whatIf.isEstimate && whatIf.savedMs > 0 ? "about " : "";
  const more = `One more request a second ${where} would save`;
  if (whatIf.savedMs < 1) {
    const why = whatIf.thenLast === longPole.key ? "" : `: ${whatIf.thenLast} would be done as late`;
    return [`${more} nothing${why}.`];
  }
  const then = whatIf.thenLast === longPole.key ? "" : `, and ${whatIf.thenLast} would be the last`;
  const saved = `${about}${durationText(whatIf.savedMs)}`.replace("about about", "about");
  return [`${more} ${saved}: done in ${durationText(whatIf.durationMs)}${then}.`];
}

/** What the plan takes for granted, in sentences. */
export function noteTexts(
  plan: Plan,
  { duplicates, peakInFlight }: { readonly duplicates: number; readonly peakInFlight: number },
): string[] {
  const notes = [
    `Assumed: every answer is good and takes ${durationText(plan.latencyMs)} (--latency). What robots.txt asks for, 429s and retries come on top.`,
  ];
  if (plan.concurrency === undefined && peakInFlight > MANY_IN_FLIGHT) {
    notes.push(
      `Up to ${countText(peakInFlight)} requests are in flight at once. politely get keeps to 32 unless told otherwise: --concurrency 32 plans for that.`,
    );
  }
  if (plan.isEstimate) notes.push("The end is more than 100 years away: it is worked out from the pace until then.");
  if (duplicates > 0) {
    notes.push(
      `${countText(duplicates)} ${plural("URL", duplicates)} listed more than once ${duplicates === 1 ? "counts" : "count"} once.`,
    );
  }
  return notes;
}

/** An instant in local time: the time alone within a day, else with the date. */
function momentText(wallMs: number, awayMs: number): string {
  const date = new Date(wallMs);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const minutes = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return awayMs < DAY_MS ? `at ${minutes}:${two(date.getSeconds())}` : `on ${day} at ${minutes}`;
}

function plural(word: string, count: number): string {
  return count === 1 ? word : `${word}s`;
}
