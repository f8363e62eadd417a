import type { GetObserver, GetProgress, GetSummary } from "../get/observer.js";
import { countText, durationText } from "../words.js";
import { bytesText, percentText, rateText } from "./amounts.js";
import { FollowingView } from "./followingView.js";
import { stderrLook } from "./look.js";
import { summaryLines } from "./summaryLines.js";
import { safeText } from "./width.js";

/** A line so often. */
const LINE_MS = 5_000;
/** So often the rate is looked at, and some planning done. */
const LOOK_MS = 200;
/** The hosts whose pace tells when the run ends. */
const HOSTS = 20;
/** A table in a file may be as wide as its longest line. */
const FILE_COLUMNS = 160;

/** Tells on stderr how a run goes, without a terminal: log lines as they come, how far it is every five seconds, the summary at the end. */
export class PlainView extends FollowingView implements GetObserver {
  #startsPerSec = 0;
  readonly #stops: (() => void)[] = [];

  begin(progress: GetProgress): void {
    this.#stops.push(this.ticker.every(LOOK_MS, () => this.#look(progress)));
    this.#stops.push(this.ticker.every(LINE_MS, () => this.#line(progress)));
  }

  log(line: string): void {
    this.io.stderr.write(`${safeText(line)}\n`);
  }

  end(summary: GetSummary): void {
    for (const stop of this.#stops) stop();
    const look = { ...stderrLook(this.io), columns: FILE_COLUMNS };
    this.io.stderr.write(`${summaryLines(summary, look).join("\n")}\n`);
  }

  #look(progress: GetProgress): void {
    this.#startsPerSec = this.meter.look(this.ticker.nowMs(), progress.starts);
    this.eta.work(progress);
  }

  #line(progress: GetProgress): void {
    const nowMs = this.ticker.nowMs();
    const { hosts } = this.board.show(progress, HOSTS, nowMs);
    const cooling = [...this.board.coolingHosts(nowMs)];
    const leftMs = this.eta.leftMs(progress, this.board.paces(hosts, nowMs), cooling);
    this.io.stderr.write(
      `${progressLine(progress, { startsPerSec: this.#startsPerSec, leftMs, coolingCount: cooling.length })}\n`,
    );
  }
}

/** What a progress line tells besides the counts. */
export interface ProgressExtras {
  readonly startsPerSec: number;
  readonly leftMs: number | undefined;
  readonly coolingCount: number;
}

/** How far a run is, in one line: `120 of 4,000 done (3%), 2 failed, 8 in flight, 2.1/s, 1.2 MB, 30 min 48 s left`. */
export function progressLine(
  progress: Pick<GetProgress, "total" | "done" | "failed" | "inFlight" | "bytes" | "isStopping">,
  { startsPerSec, leftMs, coolingCount }: ProgressExtras,
): string {
  const { total, done, failed, inFlight, bytes, isStopping } = progress;
  const parts = [`${countText(done)} of ${countText(total)} done (${percentText(done, total)})`];
  if (failed > 0) parts.push(`${countText(failed)} failed`);
  parts.push(`${countText(inFlight)} in flight`, rateText(startsPerSec), bytesText(bytes));
  if (coolingCount > 0) parts.push(`${countText(coolingCount)} ${coolingCount === 1 ? "host" : "hosts"} in cooldown`);
  if (isStopping) parts.push("stopping");
  else if (leftMs !== undefined && done < total) parts.push(`${durationText(leftMs)} left`);
  return parts.join(", ");
}
