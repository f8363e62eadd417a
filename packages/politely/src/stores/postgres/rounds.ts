import { StoreError } from "../../errors.js";
import { BEHIND_MOST_US } from "../../shared/decide.js";
import type { ChangeCells } from "../cells.js";
import type { Connection, Rows, Session } from "./client.js";
import { isConflict } from "./errors.js";
import { type Job, type Outcome, type Part, play, type Row } from "./parts.js";
import { type Statements, sweepLimit } from "./statements.js";
import { arrayText } from "./text.js";

/** So many changes may wait at once; more are refused. */
const maxWaiting = 100_000;
/** So many changes share a round at most. */
const maxTogether = 256;
/** How far down the line a round looks for changes that it can take. */
const maxLook = 1_024;
/** After so many swaps that came too late, the rows are locked first. */
const swapTries = 2;
const maxTries = 50;
/** Longest pause before another swap, for each one that came too late. */
const pauseMs = 2;
/** How long rows that had to be locked are locked at once; longer when that had to be waited for. */
const hotMs = 500;
const maxHot = 10_000;
/** So many rows of a round are queued up for, in the order in which they are asked for. */
const maxQueues = 16;
/** Longest pause after a round that failed, so that a server that is away is not asked thousands of times a second. */
const restMs = 20;
/** A round that wrote, of so many, also removes expired rows. */
const sweepEvery = 64;

/** What rounds need. */
export interface RoundsOptions {
  readonly connection: Connection;
  readonly statements: Statements;
  /** What begins a transaction that locks the rows of these names. */
  readonly opening: (names: readonly string[]) => string;
  /** A change is answered within this time, or rejected. */
  readonly timeoutMs: number;
  /** Makes a `StoreError` of what the client threw. */
  readonly explain: (error: unknown) => StoreError;
}

/** How a round keeps others from changing its rows: it does not and finds out by the versions, or it locks them. */
type Kind = "swap" | "lock";

interface WaitingJob extends Job {
  /** On the clock of this process. */
  readonly deadlineMs: number;
  tries: number;
  isOver: boolean;
  settle(outcome: Outcome): void;
}

/**
 * Carries out changes in rounds: what waits is read with one statement, worked out here, and written with another.
 *
 * A round's changes fall into parts that share no row. Each part is written only if none of its rows has changed since it was read, or is locked;
 * the others are tried again, up to 50 times. After two such failures, and as long as others want them too, the rows are locked while they are
 * read, in a transaction, so that nobody starves. Rounds that are under way at once have no row in common.
 */
export class Rounds {
  readonly #options: RoundsOptions;
  #waiting: WaitingJob[] = [];
  readonly #busy = new Set<string>();
  readonly #hotUntilMs = new Map<string, number>();
  readonly #running = { swap: 0, lock: 0 };
  #isPumping = false;
  #latestUs = 0;
  #roundsToSweep = 0;

  constructor(options: RoundsOptions) {
    this.#options = options;
  }

  /** Adds a change. `names` are those of the rows of `keys`. */
  add(keys: readonly string[], names: readonly string[], change: ChangeCells<unknown>): Promise<unknown> {
    if (this.#waiting.length >= maxWaiting) {
      return Promise.reject(
        new StoreError(`${maxWaiting} changes wait for PostgreSQL already. Find out why it is slow, or ask for less.`),
      );
    }
    return new Promise((resolve, reject) => {
      const { timeoutMs } = this.#options;
      const late = `PostgreSQL did not carry out a change of "${keys[0]}" within ${timeoutMs} ms. Check the network and how busy the server is.`;
      const timer = setTimeout(() => job.settle({ error: new StoreError(late) }), timeoutMs);
      const job: WaitingJob = {
        keys,
        names,
        change,
        deadlineMs: performance.now() + timeoutMs,
        tries: 0,
        isOver: false,
        settle(outcome) {
          clearTimeout(timer);
          job.isOver = true;
          if ("error" in outcome) reject(outcome.error);
          else resolve(outcome.answer);
        },
      };
      this.#waiting.push(job);
      if (this.#hasLane(this.#kindOf(job))) this.#pumpSoon();
    });
  }

  /** Changes that are asked for in one go share a round. */
  #pumpSoon(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    queueMicrotask(() => {
      this.#isPumping = false;
      this.#pump();
    });
  }

  #pump(): void {
    for (;;) {
      const kinds = (["swap", "lock"] as const).filter((kind) => this.#hasLane(kind));
      if (kinds.length === 0) return;
      const { kind, jobs } = this.#next(kinds);
      if (jobs.length === 0) return;
      void this.#round(kind, jobs);
    }
  }

  /** One round that locks may be under way, and beside it the others. */
  #hasLane(kind: Kind): boolean {
    const { laneCount } = this.#options.connection;
    const { swap, lock } = this.#running;
    return swap + lock < laneCount && (kind === "lock" ? lock === 0 : swap < Math.max(1, laneCount - 1));
  }

  /** Takes changes out of the line that can share a round of one of `kinds`. Nobody passes one that waits for the same row. */
  #next(kinds: readonly Kind[]): { readonly kind: Kind; readonly jobs: WaitingJob[] } {
    const jobs: WaitingJob[] = [];
    const left: WaitingJob[] = [];
    const closed = new Set<string>();
    const locked = new Set<string>();
    let open = kinds;
    let looked = 0;
    for (; looked < this.#waiting.length && looked < maxLook && jobs.length < maxTogether; looked++) {
      const job = this.#waiting[looked];
      if (job.isOver) continue;
      const kind = this.#kindOf(job);
      const isFree = job.names.every((name) => !this.#busy.has(name) && !closed.has(name));
      // A round that locks is about one matter only, so that nobody else waits for its rows.
      const isApart = locked.size > 0 && !job.names.some((name) => locked.has(name));
      if (isFree && open.includes(kind) && !isApart) {
        open = [kind];
        jobs.push(job);
        if (kind === "lock") for (const name of job.names) locked.add(name);
      } else {
        for (const name of job.names) closed.add(name);
        left.push(job);
      }
    }
    if (jobs.length > 0) this.#waiting = [...left, ...this.#waiting.slice(looked)];
    return { kind: open[0], jobs };
  }

  #kindOf({ tries, names }: WaitingJob): Kind {
    if (tries >= swapTries) return "lock";
    if (this.#hotUntilMs.size === 0) return "swap";
    const nowMs = performance.now();
    return names.some((name) => (this.#hotUntilMs.get(name) ?? 0) > nowMs) ? "lock" : "swap";
  }

  async #round(kind: Kind, jobs: readonly WaitingJob[]): Promise<void> {
    const names = [...new Set(jobs.flatMap((job) => job.names))];
    this.#running[kind] += 1;
    for (const name of names) this.#busy.add(name);
    await this.#within(this.#attempt(kind, jobs, names));
    for (const name of names) this.#busy.delete(name);
    if (this.#roundsToSweep < 0) await this.#within(this.#sweep());
    this.#running[kind] -= 1;
    this.#pump();
  }

  async #attempt(kind: Kind, jobs: readonly WaitingJob[], names: readonly string[]): Promise<void> {
    const { connection } = this.#options;
    try {
      const done =
        kind === "lock" ? await this.#lockAndSwap(jobs, names) : await this.#swap(connection, kind, jobs, names);
      for (const { outcomes } of done) {
        for (const { job, outcome } of outcomes) job.settle(outcome);
      }
    } catch (error) {
      if (!isConflict(error)) {
        for (const job of jobs) job.settle({ error: this.#options.explain(error) });
        await pause((1 + Math.random()) * (restMs / 2));
      }
    }
    this.#tryAgain(jobs.filter((job) => !job.isOver));
  }

  async #lockAndSwap(jobs: readonly WaitingJob[], names: readonly string[]): Promise<Part<WaitingJob>[]> {
    const { connection, opening } = this.#options;
    const beganMs = performance.now();
    let openedMs = beganMs;
    const done = await connection.transaction(opening(names.slice(0, maxQueues)), (session) => {
      openedMs = performance.now();
      return this.#swap(session, "lock", jobs, names);
    });
    // With nobody in the way each of the four or five round trips takes its share; now somebody was.
    const tookMs = performance.now() - beganMs;
    if (openedMs - beganMs > tookMs / 2) this.#heat(names, hotMs + 2 * tookMs);
    return done;
  }

  /** Gives the parts that were written. Those that needed no writing are settled already. */
  async #swap(
    session: Session,
    kind: Kind,
    jobs: readonly WaitingJob[],
    names: readonly string[],
  ): Promise<Part<WaitingJob>[]> {
    const { statements } = this.#options;
    const { rows, nowUs, serverUs } = this.#found(
      await session.run(kind === "lock" ? statements.readLocked : statements.read, [arrayText(names)]),
    );
    const readMs = performance.now();
    const live = jobs.filter(({ isOver }) => !isOver);
    const parts = play(live, rows, nowUs);
    const changing = parts.filter(({ writes }) => writes.size > 0);
    for (const { outcomes } of parts.filter(({ writes }) => writes.size === 0)) {
      for (const { job, outcome } of outcomes) job.settle(outcome);
    }
    if (changing.length === 0) return [];

    const versions = new Map([...rows].map(([name, { version }]) => [name, version]));
    const missing = changing.flatMap((part) => [...part.names].filter((name) => !versions.has(name)));
    if (missing.length > 0) {
      const made = await session.run(statements.make, [arrayText(missing)]);
      for (const [name, version] of made) versions.set(String(name), String(version));
    }
    const ready = changing.filter((part) => [...part.names].every((name) => versions.has(name)));
    if (ready.length === 0) return [];
    this.#roundsToSweep -= 1;
    const lines = ready.flatMap((part, number) => {
      // What arrives after its changes have been rejected must not be written any more.
      const leftMs = Math.max(...part.outcomes.map(({ job }) => job.deadlineMs)) - readMs;
      const untilUs = serverUs + Math.floor(leftMs * 1_000);
      return [...part.names].map((name) => ({ name, number, untilUs, row: part.writes.get(name) }));
    });
    const written = await session.run(statements.swap, [
      arrayText(lines.map(({ name }) => name)),
      arrayText(lines.map(({ name }) => versions.get(name))),
      arrayText(lines.map(({ number }) => number)),
      arrayText(lines.map(({ row }) => row?.value)),
      arrayText(lines.map(({ row }) => row?.expiresUs)),
      arrayText(lines.map(({ untilUs }) => untilUs)),
    ]);
    return written.map(([number]) => ready[Number(number)]);
  }

  #found(rows: Rows): { rows: Map<string, Row>; nowUs: number; serverUs: number } {
    const found = new Map<string, Row>();
    let serverUs = 0;
    for (const [name, version, value, expiresUs, clockUs] of rows) {
      serverUs = Math.max(serverUs, Number(clockUs));
      if (name !== null) {
        found.set(name, { version: String(version), value: String(value), expiresUs: Number(expiresUs) });
      }
    }
    // Answers may come in another order than they were given. What goes back by less than the core allows stands still, or two processes would undo
    // each other's time.
    this.#latestUs = serverUs < this.#latestUs - BEHIND_MOST_US ? serverUs : Math.max(serverUs, this.#latestUs);
    return { rows: found, nowUs: this.#latestUs, serverUs };
  }

  #tryAgain(jobs: readonly WaitingJob[]): void {
    if (jobs.length === 0) return;
    let most = 0;
    for (const job of jobs) {
      job.tries += 1;
      most = Math.max(most, job.tries);
      if (job.tries >= swapTries) this.#heat(job.names, hotMs);
      if (job.tries >= maxTries) {
        const message = `PostgreSQL refused a change of "${job.keys[0]}" ${maxTries} times, since others changed the same rows. Spread the load over more keys.`;
        job.settle({ error: new StoreError(message) });
      }
    }
    setTimeout(
      () => {
        this.#waiting = [...jobs.filter(({ isOver }) => !isOver), ...this.#waiting];
        this.#pump();
      },
      most >= swapTries ? 0 : Math.random() * pauseMs * most,
    );
  }

  #heat(names: readonly string[], forMs: number): void {
    if (this.#hotUntilMs.size > maxHot) this.#hotUntilMs.clear();
    for (const name of names) this.#hotUntilMs.set(name, performance.now() + forMs);
  }

  /** Removes a few expired rows. What goes wrong here goes wrong with the next change, too, which will say so. */
  async #sweep(): Promise<void> {
    const { connection, statements } = this.#options;
    this.#roundsToSweep = sweepEvery;
    const swept = await connection.run(statements.sweep, []).catch(() => []);
    if (swept.length === sweepLimit) this.#roundsToSweep = 0;
  }

  /**
   * Resolves with the work, or after the time that a change may take. Should a client never answer, every change of the round has been rejected by
   * then, and others go on. With one connection for all they cannot: what they send could become part of a transaction under way.
   */
  #within(work: Promise<void>): Promise<void> {
    const { connection, timeoutMs } = this.#options;
    return new Promise((resolve) => {
      const timer = connection.laneCount === 1 ? undefined : setTimeout(resolve, timeoutMs);
      // Whoever has closed everything need not wait for it.
      (timer as { unref?(): void } | undefined)?.unref?.();
      const end = (): void => {
        clearTimeout(timer);
        resolve();
      };
      work.then(end, end);
    });
  }
}

function pause(forMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, forMs);
  });
}
