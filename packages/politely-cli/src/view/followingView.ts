import type { IndexLine } from "../get/indexLine.js";
import type { Io } from "../io.js";
import { Eta } from "./eta.js";
import { HostBoard } from "./hostBoard.js";
import { RateMeter } from "./rateMeter.js";
import { machineTicker, type Ticker } from "./ticker.js";

/** Follows a run for those who show it: which hosts are busy, how fast it goes, when it ends. */
export abstract class FollowingView {
  protected readonly board = new HostBoard();
  protected readonly meter = new RateMeter();
  protected readonly eta: Eta;

  constructor(
    protected readonly io: Io,
    protected readonly ticker: Ticker = machineTicker,
  ) {
    this.eta = new Eta(() => ticker.nowMs());
  }

  listed(): void {}

  started(key: string): void {
    this.board.started(key);
  }

  finished(result: IndexLine): void {
    if (result.status !== undefined) this.eta.took(result.tookMs);
  }

  cooling(key: string, untilMs: number): void {
    this.board.cooling(key, untilMs);
  }
}
