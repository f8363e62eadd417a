import { fileURLToPath } from "node:url";
import { type FleetEntry, FleetMember } from "./fleetMember.js";
import { until } from "./until.js";

const maxMembers = 200;
const maxEntries = 1_000_000;

/*
 * Proofs with many processes go like this:
 *
 *   using library = await compileLibrary();
 *   await using fleet = await startFleet({ library, program: new URL("program.mjs", import.meta.url), members: [...] });
 *   fleet.go();
 *   await fleet.pause("a"); await fleet.kill("b"); …
 *   const entries = await fleet.finish(10_000);
 *   expect(checkStarts(joinStarts(entries), rule)).toEqual([]);
 *
 * The program is plain JavaScript: `programs/sample.mjs` is one. It imports `member.mjs`, which is the child's half, and clients of
 * stores as everybody does. It gets the library through `library("index.js")`, compiled from the sources of this moment.
 */

/** One process to start. */
export interface MemberOptions {
  /** Letters, digits, dots and dashes; no other member may have had it. */
  readonly id: string;
  /** Laid over the fleet's own input. */
  readonly input?: Readonly<Record<string, unknown>>;
  /** How far its wall clock is off, in seconds; negative is late. Its monotonic clock is right. Default: not at all. */
  readonly clockOffsetSec?: number;
}

/** What a fleet is started with. */
export interface FleetOptions {
  /** What the members import: see `compileLibrary`. */
  readonly library: { readonly url: string };
  /** The file that each process runs. */
  readonly program: URL;
  /** At most 200, those added later included. */
  readonly members: readonly MemberOptions[];
  /** What every member gets; it has to survive JSON. */
  readonly input?: Readonly<Record<string, unknown>>;
  /** How long members may take until they are ready. Default 60 s: a hundred processes take long to load on a busy machine. */
  readonly readyWithinMs?: number;
  /** How long a member may live; the fleet ends it then, which is a problem. Default 3 min. */
  readonly longestMs?: number;
}

/** Several processes that do the same thing at once. They end with `stopAll`, and at the latest with the process that started them. */
export interface Fleet extends AsyncDisposable {
  /** All there have been. */
  readonly members: readonly FleetMember[];
  /** Lets everyone begin who has not begun yet. */
  go(data?: unknown): void;
  /** Sends a command of the program's own. */
  send(id: string, command: string, data?: unknown): void;
  /** Starts one more, and resolves once it is ready; `go` is still to come. Rejects when it does not get ready. */
  add(member: MemberOptions): Promise<void>;
  /** Ends it with SIGKILL. Resolves once all it logged is in the log. */
  kill(id: string): Promise<void>;
  /** Stops it with SIGSTOP. Resolves once it stands still. */
  pause(id: string): Promise<void>;
  /** Lets a paused one go on. */
  resume(id: string): void;
  /** What has been logged so far, by time; at most a million entries. */
  log(): FleetEntry[];
  /**
   * Tells everyone to stop, paused ones too, and resolves with the log once all have ended by themselves.
   *
   * Rejects when that takes longer than `withinMs`, or when anything went wrong with a member before.
   */
  finish(withinMs: number): Promise<FleetEntry[]>;
  /** Kills everyone who is left, and resolves once they are gone. Any number of calls is fine. */
  stopAll(): Promise<void>;
}

/** Starts one process for each member, and resolves once all are ready. Rejects, leaving none, when one is not. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const roster = new Roster(options);
  try {
    await roster.start(options.members);
  } catch (error) {
    await roster.stopAll();
    throw error;
  }
  const stopAll = (): Promise<void> => roster.stopAll();
  return {
    members: roster.members,
    go: (data) => roster.go(data),
    send: (id, command, data) => roster.member(id).send(command, data),
    add: (member) => roster.start([member]),
    kill: (id) => roster.member(id).kill(),
    pause: (id) => roster.member(id).pause(),
    resume: (id) => roster.member(id).resume(),
    log: () => roster.log(),
    finish: (withinMs) => roster.finish(withinMs),
    stopAll,
    [Symbol.asyncDispose]: stopAll,
  };
}

class Roster {
  readonly members: FleetMember[] = [];
  readonly #options: FleetOptions;
  readonly #entries: FleetEntry[] = [];
  readonly #waiting = new Set<FleetMember>();
  readonly #problems: string[] = [];
  #isFull = false;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  async start(members: readonly MemberOptions[]): Promise<void> {
    if (this.members.length + members.length > maxMembers)
      throw new RangeError(`A fleet has ${maxMembers} members at most.`);
    const started = members.map((member) => this.#startOne(member));
    const { readyWithinMs = 60_000 } = this.#options;
    const isSettled = (): boolean => started.every(({ isReady, isAlive }) => isReady || !isAlive);
    await until("every member is ready or has ended", readyWithinMs, isSettled);
    for (const member of started.filter(({ isReady }) => !isReady)) {
      await member.ended();
      const problems = [...this.#problems, ...member.problems()];
      throw new Error(problems.join("\n") || `Member ${member.id} ended before it was ready.`);
    }
  }

  go(data: unknown): void {
    for (const member of this.#waiting) member.send("go", data);
    this.#waiting.clear();
  }

  member(id: string): FleetMember {
    const member = this.members.find((one) => one.id === id);
    if (member === undefined) throw new RangeError(`There is no member "${id}" in this fleet.`);
    return member;
  }

  log(): FleetEntry[] {
    return this.#entries.toSorted((a, b) => a.machineUs - b.machineUs);
  }

  async finish(withinMs: number): Promise<FleetEntry[]> {
    const alive = this.members.filter(({ isAlive }) => isAlive);
    for (const member of alive) {
      member.resume();
      member.send("stop");
    }
    try {
      await until("every member has ended after stop", withinMs, () => alive.every(({ isAlive }) => !isAlive));
    } catch (error) {
      const late = alive.filter(({ isAlive }) => isAlive).map(({ id }) => id);
      this.#problems.push(`${String(error)} Still there: ${late.join(", ")}.`);
    }
    await this.stopAll();
    const problems = [...this.#problems, ...this.members.flatMap((member) => member.problems())];
    if (problems.length > 0) throw new Error(problems.join("\n"));
    return this.log();
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.members.map((member) => member.kill()));
  }

  #startOne({ id, input, clockOffsetSec }: MemberOptions): FleetMember {
    if (!/^[\w.-]{1,100}$/.test(id))
      throw new TypeError(`A member's id has 1 to 100 letters, digits, dots and dashes; got "${id}"`);
    if (this.members.some((one) => one.id === id))
      throw new TypeError(`There has been a member "${id}" already; ids are used once.`);
    const { program, library, longestMs = 180_000 } = this.#options;
    const member = new FleetMember({
      id,
      program: fileURLToPath(program),
      input: { ...this.#options.input, ...input },
      libraryUrl: library.url,
      longestMs,
      clockOffsetSec,
      onEntry: (entry) => this.#keep(entry),
    });
    this.members.push(member);
    this.#waiting.add(member);
    const timer = setTimeout(() => this.#outlived(member, longestMs), longestMs);
    timer.unref();
    void member.ended().then(() => clearTimeout(timer));
    return member;
  }

  #outlived(member: FleetMember, longestMs: number): void {
    if (!member.isAlive) return;
    this.#problems.push(`Member ${member.id} was ended after ${longestMs} ms, the longest it may live.`);
    void member.kill();
  }

  #keep(entry: FleetEntry): void {
    if (this.#entries.length < maxEntries) {
      this.#entries.push(entry);
    } else if (!this.#isFull) {
      this.#isFull = true;
      this.#problems.push(`The log is full: ${maxEntries} entries. Let the fleet do less.`);
    }
  }
}
