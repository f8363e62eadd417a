import type { GetSummary, HostSummary } from "../get/observer.js";
import { countText, durationText } from "../words.js";
import { bytesText, rateText } from "./amounts.js";
import type { Look } from "./look.js";
import { type Column, tableLines } from "./table.js";
import { fitText, safeText } from "./width.js";

/** How many hosts the table at the end of a run names. */
export const SUMMARY_HOSTS = 20;

const LONGEST_NAME = 40;

/**
 * What a run came to, in a sentence, how to ask for what it left out, and a table of the hosts that went worst: most answers of 429 first, then most failures, then
 * those that took longest. At most 20 rows; the rest is counted.
 *
 * A host whose rate is above what its limits allow in the long run may have used its burst.
 */
export function summaryLines(summary: GetSummary, look: Look): string[] {
  const hosts = summary.hosts.filter(({ requests }) => requests > 0).sort(worstFirst);
  const lines = [look.paint.bold(sentence(summary))];
  const { finishedBefore, left } = summary;
  // While something is left, the same command is what to type next.
  if (finishedBefore > 0 && left === 0) {
    const count = finishedBefore === 1 ? "1 was" : `${countText(finishedBefore)} were`;
    lines.push(`${count} finished before and not asked for again; --refresh asks for all of the list.`);
  }
  if (hosts.length === 0) return lines;
  lines.push("", ...hostTable(hosts.slice(0, SUMMARY_HOSTS), look));
  if (hosts.length > SUMMARY_HOSTS) {
    lines.push(look.paint.dim(`${look.glyphs.more} and ${countText(hosts.length - SUMMARY_HOSTS)} more`));
  }
  return lines;
}

function sentence(summary: GetSummary): string {
  const { total, fetched, unchanged, failed, left, requests, bytes, tookMs, isStopped } = summary;
  const also = [
    ...(left > 0 ? [`${countText(left)} left`] : []),
    ...(unchanged > 0 ? [`${countText(unchanged)} unchanged`] : []),
    ...(failed > 0 ? [`${countText(failed)} failed`] : []),
    `${countText(requests)} ${requests === 1 ? "request" : "requests"}`,
    bytesText(bytes),
    durationText(tookMs),
  ];
  return `${isStopped ? "Stopped: " : ""}${countText(fetched)} of ${countText(total)} fetched, ${also.join(", ")}.`;
}

function hostTable(hosts: readonly HostSummary[], look: Look): string[] {
  const { paint, glyphs } = look;
  const hasFailures = hosts.some(({ failed }) => failed > 0);
  const columns: readonly Column[] = [
    { title: "host", align: "left" },
    { title: "requests", align: "right" },
    { title: "429s", align: "right" },
    ...(hasFailures ? [{ title: "failed", align: "right" } as const] : []),
    { title: "waited", align: "right" },
    { title: "rate", align: "right" },
    { title: "of limit", align: "right" },
    { title: "limit", align: "left" },
  ];
  const name = Math.max(8, Math.min(LONGEST_NAME, Math.floor(look.columns / 3)));
  const alarm = (count: number): string => (count > 0 ? paint.red(countText(count)) : "0");
  const rows = hosts.map((host) => [
    fitText(safeText(host.key), name, glyphs.more),
    countText(host.requests),
    alarm(host.throttled),
    ...(hasFailures ? [alarm(host.failed)] : []),
    durationText(host.waitedMs),
    host.perSec > 0 ? rateText(host.perSec) : "",
    shareText(host),
    safeText(host.limit),
  ]);
  const [titles = "", ...lines] = tableLines(columns, rows, { columns: look.columns, more: glyphs.more });
  return [paint.dim(titles), ...lines];
}

/** How much of what the limits allow in the long run was used. Rounded down: 100% is really all of it. Nothing where a burst was more than that: it is no fault. */
function shareText({ perSec, limitPerSec, requests }: HostSummary): string {
  if (limitPerSec === undefined || limitPerSec <= 0 || requests < 2) return "";
  const percent = Math.floor((perSec / limitPerSec) * 100 + 1e-9);
  return percent > 100 ? "" : `${percent}%`;
}

function worstFirst(left: HostSummary, right: HostSummary): number {
  return (
    right.throttled - left.throttled ||
    right.failed - left.failed ||
    tookSec(right) - tookSec(left) ||
    (left.key < right.key ? -1 : 1)
  );
}

/** From its first start to its last. */
function tookSec({ requests, perSec }: HostSummary): number {
  return perSec > 0 ? requests / perSec : 0;
}
