import { StoreError } from "../../errors.js";
import type { Cells, ChangeCells } from "../cells.js";
import { machineTime } from "../machineTime.js";
import { openMemory } from "./memory.js";
import { Ring } from "./ring.js";
import { Patience, RunningTime } from "./runningTime.js";
import { SharedLog } from "./sharedLog.js";
import { Turn } from "./turn.js";

/** Long for a copy of bytes, which takes a microsecond, and short for those who wait. */
const USUAL_STUCK_MS = 100;
/** Taking a turn away costs no more than doing a change twice, so it comes sooner than giving up a record. */
const TURN_SHARE = 1 / 5;
/** How often a turn is asked for before other work is let in: about 20 µs, as long as most turns take. */
const SPINS = 1_000;
/** So often only one turn of the event loop is waited; then 1 ms each time. */
const QUICK_MISSES = 50;
/** Changes that are carried out before other work is let in. */
const AT_ONCE = 64;
/** Records of others that are read before other work is let in: a millisecond or two. */
const READ_AT_ONCE = 1_000;
/** More changes than this do not wait at once: further ones are refused. */
const MOST_WAITING = 100_000;

/** How long others are waited for. */
export interface ThreadPatience {
  /** A change that does not get its turn for so long is refused. */
  readonly busyMs: number;
  /**
   * A record that is reserved and not published for so long belongs to a thread that has ended or stands still, and is given up. Default 100. A
   * turn is taken away after a fifth of it.
   */
  readonly stuckMs?: number;
}

interface Job {
  readonly giveUpMs: number;
  /** True when it is done and settled. */
  attempt(log: SharedLog): boolean;
  reject(error: unknown): void;
}

/**
 * Keeps strings in shared memory, and changes several in one step. What `threadStore` is made of.
 *
 * Changes of one thread are carried out in the order in which they are asked for, at once when no other thread is at it. A change that does
 * not get its turn for `busyMs` is refused with `StoreError`; time during which the process is stopped does not count.
 */
export function threadCells(buffer: SharedArrayBuffer, { busyMs, stuckMs = USUAL_STUCK_MS }: ThreadPatience): Cells {
  const clock = machineTime();
  const memory = openMemory(buffer);
  const time = new RunningTime(() => clock.nowUs() / 1_000);
  const turns = new Turns(new SharedLog(new Ring(memory), () => clock.nowUs()), new Turn(memory), time, stuckMs);
  const waiting: Job[] = [];
  let isPumping = false;

  const pump = async (): Promise<void> => {
    let misses = 0;
    for (let done = 1; waiting.length > 0; ) {
      if (turns.attempt(waiting[0])) {
        waiting.shift();
        misses = 0;
        if (done++ % AT_ONCE === 0) await nextTurn();
        continue;
      }
      refuseLate(waiting, time.ms(), busyMs);
      misses += 1;
      await (misses <= QUICK_MISSES ? nextTurn() : aMillisecond());
    }
    isPumping = false;
  };

  return {
    name: "threads",
    timeline: "machine",
    change: (keys, change) =>
      new Promise((resolve, reject) => {
        if (waiting.length >= MOST_WAITING) {
          reject(
            new StoreError(`${MOST_WAITING} changes already wait for the shared memory. Ask for fewer at a time.`),
          );
          return;
        }
        waiting.push(jobOf(keys, change, { resolve, reject, giveUpMs: time.ms() + busyMs }));
        if (isPumping) return;
        isPumping = true;
        void pump();
      }),
  };
}

/** Carries out changes in turns with other threads. */
class Turns {
  private readonly turnPatience: Patience;
  private readonly recordPatience: Patience;

  constructor(
    private readonly log: SharedLog,
    private readonly turn: Turn,
    private readonly time: RunningTime,
    stuckMs: number,
  ) {
    this.turnPatience = new Patience(stuckMs * TURN_SHARE);
    this.recordPatience = new Patience(stuckMs);
  }

  /** Carries out a job if it is this thread's turn. False: try again later. */
  attempt(job: Job): boolean {
    try {
      if (!this.isUpToDate()) return false;
      const ticket = this.takeTurn();
      if (ticket === 0) return false;
      try {
        // What others appended before the turn was taken.
        return this.isUpToDate() && job.attempt(this.log);
      } finally {
        this.turn.end(ticket);
      }
    } catch (error) {
      job.reject(error);
      return true;
    }
  }

  /** Reads what is new. A record that stays pending is given up, since its thread has ended or stands still. */
  private isUpToDate(): boolean {
    const progress = this.log.read(READ_AT_ONCE);
    if (progress !== "pending") return progress === "level";
    const nowMs = this.time.ms();
    // Looked at together, so that a thread which ended with both its turn and a record is waited for once.
    this.turnPatience.isOver(this.turn.current(), nowMs);
    if (!this.recordPatience.isOver(this.log.position, nowMs)) return false;
    this.log.abandonPending();
    return this.log.read(READ_AT_ONCE) === "level";
  }

  private takeTurn(): number {
    for (let spin = 0; spin < SPINS; spin++) {
      const ticket = this.turn.take();
      if (ticket !== 0) return ticket;
    }
    const holder = this.turn.current();
    return this.turnPatience.isOver(holder, this.time.ms()) ? this.turn.take(holder) : 0;
  }
}

interface JobEnd<Answer> {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
  readonly giveUpMs: number;
}

function jobOf<Answer>(
  keys: readonly string[],
  change: ChangeCells<Answer>,
  { resolve, reject, giveUpMs }: JobEnd<Answer>,
): Job {
  return {
    giveUpMs,
    reject,
    attempt(log) {
      const result = log.change(keys, change);
      if (result === undefined) return false;
      resolve(result.answer);
      return true;
    },
  };
}

/** They stand in the order in which they came, so those that waited longest are first. */
function refuseLate(waiting: Job[], nowMs: number, busyMs: number): void {
  while (waiting.length > 0 && waiting[0].giveUpMs <= nowMs) {
    waiting
      .shift()
      ?.reject(
        new StoreError(
          `Other threads kept the shared memory busy for ${busyMs} ms. Send less through it, or raise busyMs.`,
        ),
      );
  }
}

function nextTurn(): Promise<void> {
  const timers = globalThis as unknown as { setImmediate(fn: () => void): unknown };
  return new Promise((resolve) => timers.setImmediate(resolve));
}

function aMillisecond(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}
