import type { HostWait } from "../get/observer.js";
import type { LiveSnapshot } from "../view/liveLines.js";
import { RateMeter } from "../view/rateMeter.js";
import type { DemoSite } from "./sites.js";

interface Row {
  readonly name: string;
  readonly host: string;
  readonly total: number;
  readonly meter: RateMeter;
  starts: number;
  inFlight: number;
  done: number;
  failed: number;
}

/** Counts what one caller does, for the picture. The table at the end has what the sites counted. */
export class Tally {
  readonly #rows: readonly Row[];
  readonly #meter = new RateMeter();
  #explain: ((host: string) => HostWait) | undefined;
  #bytes = 0;

  constructor(sites: readonly DemoSite[]) {
    this.#rows = sites.map(({ name, host, urls }) => ({
      name,
      host,
      total: urls.length,
      meter: new RateMeter(),
      starts: 0,
      inFlight: 0,
      done: 0,
      failed: 0,
    }));
  }

  /** A request to `host` starts, be it for a page or for robots.txt. */
  started(host: string): void {
    const row = this.#row(host);
    if (row === undefined) return;
    row.starts += 1;
    row.inFlight += 1;
  }

  /** A request to `host` is over. */
  ended(host: string): void {
    const row = this.#row(host);
    if (row !== undefined) row.inFlight -= 1;
  }

  /** A page was answered. */
  finished(host: string, isFine: boolean, bytes: number): void {
    const row = this.#row(host);
    if (row === undefined) return;
    row.done += 1;
    row.failed += isFine ? 0 : 1;
    this.#bytes += bytes;
  }

  /** Says from now on what a host waits for; undefined: nobody knows. */
  explainWith(explain: ((host: string) => HostWait) | undefined): void {
    this.#explain = explain;
  }

  get starts(): number {
    return this.#sum("starts");
  }

  /** The picture of this moment, without the time that is left. */
  snapshot(nowMs: number): LiveSnapshot {
    return {
      total: this.#sum("total"),
      done: this.#sum("done"),
      failed: this.#sum("failed"),
      inFlight: this.#sum("inFlight"),
      bytes: this.#bytes,
      startsPerSec: this.#meter.look(nowMs, this.starts),
      isStopping: false,
      hosts: this.#rows.map(({ name, host, total, done, failed, starts, inFlight, meter }) => ({
        key: name,
        total,
        done,
        failed,
        inFlight,
        startsPerSec: meter.look(nowMs, starts),
        limit: "",
        wait: this.#explain?.(host),
      })),
      moreHosts: 0,
    };
  }

  #row(host: string): Row | undefined {
    return this.#rows.find((row) => row.host === host);
  }

  #sum(field: "total" | "done" | "failed" | "starts" | "inFlight"): number {
    return this.#rows.reduce((sum, row) => sum + row[field], 0);
  }
}
