import type { Paint } from "../paint.js";
import { tableLines } from "../view/table.js";
import { countText, durationText } from "../words.js";
import type { Caller } from "./callers.js";
import type { DemoSite } from "./sites.js";
import type { Verdict } from "./verdict.js";

/** How a caller fared. */
export interface CallerResult {
  readonly caller: Caller["name"];
  readonly tookMs: number;
  readonly verdicts: readonly Verdict[];
}

/** What the demonstration is about. */
export function introLines(sites: readonly DemoSite[], paint: Paint): string[] {
  const pages = sites.reduce((sum, { urls }) => sum + urls.length, 0);
  return [
    `Three sites on this machine, each with its own manners. Two callers want the`,
    `same ${countText(pages)} pages from them.`,
    "",
    ...sites.map(({ name, manners }) => `  ${paint.bold(name.padEnd(8))} ${manners}`),
    "",
  ];
}

/** What one caller is going to do. */
export function callerLine({ name, says }: Caller, paint: Paint): string {
  return `${paint.bold(name)}: ${says}`;
}

/** The policy that keeps the second caller polite, as a program has it. */
export function policyLines(sites: readonly DemoSite[], paint: Paint): string[] {
  const entries = sites.map(({ name, host, policy }) => {
    const limits = Object.entries(policy).map(([field, value]) => `${field}: ${JSON.stringify(value)}`);
    return `    "${host}": { ${limits.join(", ")} }, ${paint.dim(`// ${name}`)}`;
  });
  return [
    "  const polite = politely({",
    "    hosts: {",
    ...entries.map((entry) => `  ${entry}`),
    "    },",
    '    http: { userAgent: "politely-demo/1.0", robots: true },',
    "  });",
    "  const response = await polite.fetch(url);",
  ];
}

/** How long a caller took and what it got, in a line. */
export function resultLine({ tookMs, verdicts }: CallerResult): string {
  const sum = (field: "pages" | "wanted" | "throttled"): number =>
    verdicts.reduce((total, verdict) => total + verdict[field], 0);
  return `  ${sum("pages")} of ${sum("wanted")} pages in ${durationText(tookMs)}, ${sum("throttled")} answers of 429`;
}

/** What each site counted itself, a row for each caller, and below it what the audit found. */
export function verdictLines(results: readonly CallerResult[], paint: Paint): string[] {
  const verdicts = (results[0]?.verdicts ?? []).flatMap(({ site }) =>
    results.flatMap((result) => result.verdicts.filter((verdict) => verdict.site === site)),
  );
  const [titles = "", ...rows] = tableLines(
    [
      { title: "site", align: "left" },
      { title: "caller", align: "left" },
      { title: "pages", align: "right" },
      { title: "requests", align: "right" },
      { title: "429s", align: "right" },
      { title: "closest gap", align: "right" },
      { title: "most in 1 s", align: "right" },
      { title: "rules kept", align: "left" },
    ],
    verdicts.map((verdict) => [
      verdict.site,
      verdict.caller,
      `${verdict.pages}/${verdict.wanted}`,
      countText(verdict.requests),
      verdict.throttled > 0 ? paint.red(countText(verdict.throttled)) : "0",
      verdict.closestGapMs === undefined ? "" : gapText(verdict.closestGapMs),
      countText(verdict.mostInASecond),
      verdict.isKept ? paint.green("yes") : paint.red("no"),
    ]),
  );
  const problems = verdicts.flatMap(({ site, caller, problems: found }) =>
    found.map((problem) => `  ${caller} at ${site}: ${problem}`),
  );
  return [
    "As each site counted, and as the audit of its log judges:",
    "",
    paint.dim(`  ${titles}`),
    ...rows.map((row) => `  ${row}`),
    ...(problems.length > 0 ? ["", ...problems] : []),
  ];
}

/** A gap to a tenth of a millisecond where it is short. */
function gapText(gapMs: number): string {
  return gapMs < 10 ? `${Math.round(gapMs * 10) / 10} ms` : durationText(gapMs);
}
