import type { StoreError } from "../errors.js";
import type { CellChange } from "./cells.js";

// For places that can write cells on the condition that they are still as they were seen. What is to be written is worked out on the cells as this process last saw
// them; where others were faster, the answer says what is there, and it is worked out again. So a change that nobody disturbs is one round trip.

/** A cell as it is to be. */
export interface NewCell {
  readonly value: string;
  readonly expiresUs: number;
}

/** A cell as it is. */
export interface SeenCell extends NewCell {
  /** Another one with each write, and never the same again. */
  readonly version: string;
  /** What others left there to be carried out, since they came too late. */
  readonly notes?: readonly string[];
}

/** What comes out of a change, and which askers it wakes. */
export interface NotedOutcome<Answer> extends CellChange<Answer> {
  readonly wake?: readonly string[];
}

/** A change that takes along what others left to be carried out. */
export interface NotedChange<Answer> {
  (
    values: readonly (string | undefined)[],
    nowUs: number,
    errorUs?: number,
    notes?: readonly string[],
  ): NotedOutcome<Answer>;
  /** The change as data, for others; undefined: only we can carry it out. */
  note?: () => string | undefined;
}

/** Cells as they were last seen; those that are not there are missing. */
export type Seen = ReadonlyMap<string, SeenCell>;

/** Cells that are written together or not at all. */
export interface Part {
  /** All that the writes depend on. */
  readonly names: ReadonlySet<string>;
  readonly writes: ReadonlyMap<string, NewCell>;
  /** To be left at the first cell where others were faster. */
  readonly note: string | undefined;
  /** Askers to be told that their turn has come. */
  readonly wake: readonly string[];
}

/** What came of a write. */
export interface Swapped {
  /** The version that the cells of each part have now; undefined for a part that was not written. */
  readonly versions: readonly (string | undefined)[];
  /** What others have left at the cells that were written since they were seen. */
  readonly left?: ReadonlyMap<string, readonly string[]>;
  /** The cells of the other parts as far as they are known now; undefined where they have to be read. */
  readonly seen: Seen | undefined;
  /** They were all seen just now, in one step. */
  readonly isFresh: boolean;
  /** Others have tried to write the same cells, as far as the place can tell. */
  readonly hasCompany: boolean;
}

/** The place's time, and how far behind it may be. It is never ahead. */
export interface PlaceTime {
  readonly nowUs: number;
  readonly errorUs: number;
}

/** Some changes on their way. */
export interface Turn {
  /** Nobody waits any more. */
  readonly signal: AbortSignal;
  /** How often it was refused, and why the last time, for the message when time is up. */
  refusals: number;
  why: string | undefined;
}

/** A place that compares and swaps. Its methods reject with what the client throws. */
export interface SwapPlace {
  /** A change is answered within this time, or rejected. */
  readonly timeoutMs: number;
  /** So many turns may be under way at once, with so many changes in each. */
  readonly lanes: number;
  readonly together: number;
  /** So many cells are remembered. */
  readonly remembered: number;
  /** A cell that is not remembered is taken to be missing, since a refused write says what is there. Else it is read. */
  readonly isGuessing: boolean;
  /** Undefined: it is not known; `read` will tell. */
  time(turn: Turn): Promise<PlaceTime | undefined>;
  read(names: readonly string[], turn: Turn): Promise<Seen>;
  swap(parts: readonly Part[], seen: Seen, nowUs: number, turn: Turn): Promise<Swapped>;
  /** What the client threw. */
  failureOf(error: unknown): StoreError;
  /** Time is up for a change of that key. */
  lateError(key: string, turn: Turn | undefined): StoreError;
}

/** A turn is over after this, though it goes on: its connection may have died unnoticed. */
const TURN_MOST_MS = 1_400;
/**
 * A process that has just written gives way to others for a random part of a round trip, when they have tried to write the same cells within this time:
 * whoever writes again at once is the first to know what is there, and they would always be too late. Where the place cannot tell, it does so now and then.
 */
const COMPANY_MS = 10_000;
const ALONE_SHARE = 1 / 8;
/** All remembered values together have at most this many characters. */
const CHARACTERS_MOST = 16_000_000;
const HASHED = "sha256:";
/** What every database keeps as it is, as part of an index. */
const BYTES_MOST = 2_000;
// Control characters, and halves of characters, which would come back as others.
const ODD = /[\p{Cc}\p{Surrogate}]/u;
/** Expiries beyond a hundred years are cut, so that the sum with the time stays a safe integer. */
const TTL_MOST_US = 100 * 366 * 86_400_000_000;

/** One change that waits for its answer. */
interface Job {
  readonly names: readonly string[];
  readonly change: NotedChange<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
  turn: (Turn & { readonly jobs: readonly Job[]; readonly control: AbortController }) | undefined;
  isOver: boolean;
}

/** A part that was worked out. */
interface Played extends Part {
  /** Answers its jobs. */
  readonly settle: () => void;
}

/** The changes of the cells of one place. Those that share a cell follow one another, in the order in which they came; all others go at the same time. */
export class SwapCells {
  readonly #remembered: RememberedCells;
  #waiting: Job[] = [];
  readonly #busy = new Set<string>();
  #running = 0;
  #isPumping = false;
  #tripMs = 0;
  #companyMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly place: SwapPlace) {
    this.#remembered = new RememberedCells(place.remembered);
  }

  /** As `change` of `Cells`. */
  async change(keys: readonly string[], change: NotedChange<unknown>): Promise<unknown> {
    const names = await Promise.all(keys.map(cellName));
    const { place } = this;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        end();
        reject(place.lateError(keys[0], job.turn));
        if (job.turn?.jobs.every(({ isOver }) => isOver)) job.turn.control.abort();
      }, place.timeoutMs);
      const end = (): void => {
        clearTimeout(timer);
        job.isOver = true;
      };
      const job: Job = {
        names,
        change,
        turn: undefined,
        isOver: false,
        resolve(answer) {
          end();
          resolve(answer);
        },
        reject(error) {
          end();
          reject(error);
        },
      };
      this.#waiting.push(job);
      if (this.#isPumping) return;
      // Those that are asked for in one go share a turn.
      this.#isPumping = true;
      queueMicrotask(() => {
        this.#isPumping = false;
        this.#pump();
      });
    });
  }

  /** Begins turns of what can share one. Nobody passes one that waits for the same cell. */
  #pump(): void {
    const { lanes, together } = this.place;
    while (this.#running < lanes) {
      const jobs: Job[] = [];
      const closed = new Set(this.#busy);
      this.#waiting = this.#waiting.filter((job) => {
        if (job.isOver) return false;
        const isFree = jobs.length < together && job.names.every((name) => !closed.has(name));
        if (isFree) jobs.push(job);
        else for (const name of job.names) closed.add(name);
        return !isFree;
      });
      if (jobs.length === 0) return;
      void this.#run(jobs);
    }
  }

  async #run(jobs: readonly Job[]): Promise<void> {
    const names = [...new Set(jobs.flatMap((job) => job.names))];
    const control = new AbortController();
    const turn = { signal: control.signal, control, jobs, refusals: 0, why: undefined };
    for (const job of jobs) job.turn = turn;
    this.#running += 1;
    for (const name of names) this.#busy.add(name);
    let timer: unknown;
    const mostMs = Math.min(TURN_MOST_MS, this.place.timeoutMs);
    const isLong = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, mostMs);
    });
    await Promise.race([this.#attempt(jobs, names, turn), isLong]);
    clearTimeout(timer as Parameters<typeof clearTimeout>[0]);
    this.#running -= 1;
    const free = (): void => {
      for (const name of names) this.#busy.delete(name);
      this.#pump();
    };
    if (!this.place.isGuessing || (!this.#hasCompany && Math.random() >= ALONE_SHARE)) free();
    else setTimeout(free, Math.random() * this.#tripMs);
  }

  async #attempt(jobs: readonly Job[], names: readonly string[], turn: Turn): Promise<void> {
    const { place } = this;
    let seen = this.#recall(names);
    let isFresh = false;
    try {
      // Each time around is a round trip at least, and jobs are over in time.
      for (let live = jobs; live.length > 0; live = live.filter(({ isOver }) => !isOver)) {
        const time = await place.time(turn);
        if (seen === undefined || time === undefined) {
          [seen, isFresh] = [this.#see(names, await place.read(names, turn)), true];
          continue;
        }
        const known = seen;
        const parts = groupsOf(live).map((some) => play(some, known, time, this.#hasCompany));
        const idle = parts.filter(({ writes }) => writes.size === 0);
        // What changes nothing says something of cells that may have changed.
        if (idle.length > 0 && !isFresh) seen = undefined;
        else {
          for (const { settle } of idle) settle();
          const changing = parts.filter(({ writes }) => writes.size > 0);
          if (changing.length > 0) [seen, isFresh] = await this.#swap(changing, known, time.nowUs, turn);
        }
      }
    } catch (error) {
      for (const name of names) this.#remembered.set(name, undefined);
      for (const { isOver, reject } of jobs) if (!isOver) reject(place.failureOf(error));
    }
  }

  get #hasCompany(): boolean {
    return performance.now() - this.#companyMs <= COMPANY_MS;
  }

  /** Cells as they were last seen; undefined where one is not known and has to be read. */
  #recall(names: readonly string[]): Seen | undefined {
    const known = names.flatMap((name) => {
      const cell = this.#remembered.get(name);
      return cell === undefined ? [] : [[name, cell] as const];
    });
    return known.length < names.length && !this.place.isGuessing ? undefined : new Map(known);
  }

  #see<Found extends Seen | undefined>(names: Iterable<string>, found: Found): Found {
    for (const name of names) this.#remembered.set(name, found?.get(name));
    return found;
  }

  /** Writes what can be written and answers it. Says what is there of the rest, and whether that is so since just now. */
  async #swap(parts: readonly Played[], before: Seen, nowUs: number, turn: Turn): Promise<[Seen | undefined, boolean]> {
    const sentMs = performance.now();
    const { versions, left, seen, isFresh, hasCompany } = await this.place.swap(parts, before, nowUs, turn);
    if (hasCompany) this.#companyMs = performance.now();
    for (const [index, { names, writes, settle }] of parts.entries()) {
      const version = versions[index];
      if (version === undefined) {
        this.#see(names, seen);
        continue;
      }
      this.#tripMs += (performance.now() - sentMs - this.#tripMs) / 8;
      for (const [name, cell] of writes) this.#remembered.set(name, { ...cell, version, notes: left?.get(name) ?? [] });
      settle();
    }
    return [seen, isFresh];
  }
}

/** Puts together changes that share cells, directly or through others, in the order in which they came. */
function groupsOf(jobs: readonly Job[]): Job[][] {
  let groups: { readonly names: ReadonlySet<string>; readonly jobs: Job[] }[] = [];
  for (const job of jobs) {
    const touched = groups.filter(({ names }) => job.names.some((name) => names.has(name)));
    if (touched.length > 0) groups = groups.filter((group) => !touched.includes(group));
    const names = new Set([...touched.flatMap((group) => [...group.names]), ...job.names]);
    groups.push({ names, jobs: [...touched.flatMap((group) => group.jobs), job] });
  }
  return groups.map((group) => group.jobs);
}

/** Works out changes one after the other: each sees what those before it wrote. One that throws changes nothing. */
function play(jobs: readonly Job[], seen: Seen, { nowUs, errorUs }: PlaceTime, hasCompany: boolean): Played {
  const writes = new Map<string, NewCell>();
  const wake: string[] = [];
  const notes = [...new Set(jobs.flatMap(({ names }) => names.flatMap((name) => seen.get(name)?.notes ?? [])))];
  const answers = jobs.map(({ names, change, resolve, reject }) => {
    try {
      const values = names.map((name) => {
        const cell = writes.get(name) ?? seen.get(name);
        return cell !== undefined && cell.expiresUs > nowUs ? cell.value : undefined;
      });
      const { writes: changed, answer, wake: woken = [] } = change(values, nowUs, errorUs, notes);
      wake.push(...woken);
      for (const { index, value, ttlUs } of changed)
        writes.set(names[index], { value, expiresUs: nowUs + Math.ceil(Math.min(ttlUs, TTL_MOST_US)) });
      return () => resolve(answer);
    } catch (error) {
      return () => reject(error);
    }
  });
  const settle = (): void => {
    for (const answer of answers) answer();
  };
  const note = hasCompany && jobs.length === 1 ? jobs[0].change.note?.() : undefined;
  return { names: new Set(jobs.flatMap(({ names }) => names)), writes, note, wake, settle };
}

/** Cells as this process last saw them, by name. Beyond `countMost`, or 16 million characters, those that were set the longest time ago are forgotten. */
class RememberedCells {
  readonly #cells = new Map<string, SeenCell>();
  #characters = 0;

  constructor(private readonly countMost: number) {}

  /** Undefined: not seen lately, or there was none. */
  get(name: string): SeenCell | undefined {
    return this.#cells.get(name);
  }

  /** Remembers a cell, or with undefined forgets it. */
  set(name: string, cell: SeenCell | undefined): void {
    this.#characters -= this.#cells.get(name)?.value.length ?? 0;
    this.#cells.delete(name);
    if (cell === undefined) return;
    this.#cells.set(name, cell);
    this.#characters += cell.value.length;
    while (this.#cells.size > this.countMost || this.#characters > CHARACTERS_MOST) {
      const [oldest] = this.#cells.keys();
      this.set(oldest, undefined);
    }
  }
}

/** The name of a cell in a database: the key itself, or a hash of one that is empty, longer than 2,000 bytes, or has characters that a database may not keep. */
async function cellName(key: string): Promise<string> {
  // No character of UTF-16 takes more than three bytes.
  const fits = key.length * 3 <= BYTES_MOST || new TextEncoder().encode(key).length <= BYTES_MOST;
  if (fits && key !== "" && !key.startsWith(HASHED) && !ODD.test(key)) return key;
  const units = Uint16Array.from({ length: key.length }, (_, index) => key.charCodeAt(index));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", units));
  return HASHED + Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
