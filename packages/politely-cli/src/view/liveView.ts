import type { GetObserver, GetProgress, GetSummary } from "../get/observer.js";
import type { Io } from "../io.js";
import { FollowingView } from "./followingView.js";
import { type LiveSnapshot, liveLines, OTHER_ROWS } from "./liveLines.js";
import { sizeOf, stderrLook } from "./look.js";
import { Screen } from "./screen.js";
import { summaryLines } from "./summaryLines.js";
import type { Ticker } from "./ticker.js";
import { safeText } from "./width.js";

/** A new picture at most so often: ten a second. */
const FRAME_MS = 100;
/** Not more bars than this, however high the terminal is. */
const MAX_BARS = 20;
/** The empty line with the cursor, and some log lines, stay visible. */
const ROWS_KEPT = 3;

/** Draws a run on the terminal at stderr: bars for its hosts, the total, log lines above; at the end the summary in their place. */
export class LiveView extends FollowingView implements GetObserver {
  readonly #screen: Screen;
  #progress: GetProgress | undefined;
  #stopTicking: (() => void) | undefined;
  readonly #onContinue = (): void => this.#screen.keep();

  constructor(io: Io, ticker?: Ticker) {
    super(io, ticker);
    this.#screen = new Screen(io.stderr, () => sizeOf(io));
  }

  begin(progress: GetProgress): void {
    this.#progress = progress;
    // After Ctrl-Z and `fg` the shell has written below the picture.
    process.on("SIGCONT", this.#onContinue);
    this.#stopTicking ??= this.ticker.every(FRAME_MS, () => this.#draw());
  }

  log(line: string): void {
    this.#screen.log(safeText(line));
    // Before the first picture nobody draws.
    if (this.#progress === undefined) this.#screen.clear();
  }

  end(summary: GetSummary): void {
    process.off("SIGCONT", this.#onContinue);
    this.#stopTicking?.();
    this.#progress = undefined;
    this.#screen.clear();
    this.io.stderr.write(`${summaryLines(summary, stderrLook(this.io)).join("\n")}\n`);
  }

  #draw(): void {
    const progress = this.#progress;
    if (progress === undefined) return;
    const { columns, rows } = sizeOf(this.io);
    this.eta.work(progress);
    const snapshot = this.#snapshot(progress, Math.max(0, Math.min(MAX_BARS, rows - OTHER_ROWS - ROWS_KEPT)));
    // The last column stays free: some terminals wrap when it is written.
    this.#screen.draw(liveLines(snapshot, { ...stderrLook(this.io), columns: Math.max(1, columns - 1) }));
  }

  #snapshot(progress: GetProgress, bars: number): LiveSnapshot {
    const nowMs = this.ticker.nowMs();
    const { hosts, more } = this.board.show(progress, bars, nowMs);
    return {
      total: progress.total,
      done: progress.done,
      failed: progress.failed,
      inFlight: progress.inFlight,
      bytes: progress.bytes,
      isStopping: progress.isStopping,
      startsPerSec: this.meter.look(nowMs, progress.starts),
      leftMs: this.eta.leftMs(progress, this.board.paces(hosts, nowMs), this.board.coolingHosts(nowMs)),
      hosts,
      moreHosts: more,
    };
  }
}
