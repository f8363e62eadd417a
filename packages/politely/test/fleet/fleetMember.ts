import { setTimeout as delay } from "node:timers/promises";
import { fakedClock, removeFakedClock } from "./fakedClock.js";
import { type GuardedProcess, guardedProcess } from "./guardedProcess.js";
import { stateOf } from "./isAlive.js";
import { until } from "./until.js";

const maxLineLength = 65_536;
const maxErrorLength = 4_000;
const drainedWithinMs = 2_000;
const pausedWithinMs = 5_000;

/** One line of the merged log. `machineUs` is on the clock that all processes of the machine share. */
export interface FleetEntry {
  /** `start` and `release` are for `joinStarts`; the fleet itself writes `killed`, `paused`, `resumed` and `ended`; others are the program's. */
  readonly type: string;
  readonly member: string;
  readonly machineUs: number;
  readonly [field: string]: unknown;
}

/** What one process is started with. */
export interface MemberStart {
  readonly id: string;
  readonly program: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly libraryUrl: string;
  readonly longestMs: number;
  /** How far its wall clock is off, through libfaketime. Undefined: it is right. */
  readonly clockOffsetSec: number | undefined;
  onEntry(entry: FleetEntry): void;
}

/** One process of a fleet. */
export class FleetMember {
  readonly id: string;
  readonly #process: GuardedProcess;
  readonly #onEntry: (entry: FleetEntry) => void;
  readonly #drained: Promise<void>;
  readonly #problems: string[] = [];
  #isReady = false;
  #isKilled = false;
  #isPaused = false;
  #line = "";
  #said = "";

  constructor(start: MemberStart) {
    this.id = start.id;
    this.#onEntry = (entry) => start.onEntry(entry);
    const { id, input, libraryUrl, longestMs, clockOffsetSec } = start;
    // The runner's own NODE_OPTIONS are not the program's.
    const { NODE_OPTIONS: _, ...inherited } = process.env;
    this.#process = guardedProcess(process.execPath, [start.program], {
      env: {
        ...inherited,
        ...(clockOffsetSec === undefined ? {} : fakedClock(clockOffsetSec)),
        POLITELY_FLEET: JSON.stringify({ id, input, libraryUrl, longestMs }),
      },
      stdio: ["pipe", "pipe", "pipe"],
    });
    const { stdin, stdout, stderr } = this.#process.child;
    // A command to a process that has just ended is lost, as it should be.
    stdin?.on("error", () => {});
    stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#said = (this.#said + text).slice(-maxErrorLength);
    });
    stdout?.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    const streams = [stdout, stderr].map((stream) => new Promise<void>((resolve) => stream?.once("close", resolve)));
    this.#drained = Promise.all([this.#process.ended, ...streams]).then(() => {
      // The last line of a killed one may be cut.
      if (!this.#isKilled && this.#line !== "") this.#take(this.#line);
    });
    void this.#process.ended.then(({ code, signal }) => {
      if (clockOffsetSec !== undefined) removeFakedClock(this.pid);
      this.#note(this.#isKilled ? "killed" : "ended");
      if (!this.#isKilled && code !== 0) this.#complain(`ended with ${code === null ? signal : `exit code ${code}`}`);
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  get isAlive(): boolean {
    return this.#process.ending === undefined;
  }

  /** It has said that it can begin. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** What went wrong, each with the end of what it said on standard error. Being killed by the fleet is no problem. */
  problems(): string[] {
    const said = this.#said.trim();
    return this.#problems.map((problem) => `Member ${this.id} ${problem}.${said === "" ? "" : ` It said: ${said}`}`);
  }

  send(command: string, data?: unknown): void {
    if (this.isAlive) this.#process.child.stdin?.write(`${JSON.stringify({ command, data })}\n`);
  }

  /** Stops it in the middle of whatever it does, and resolves once it stands still. Nothing it holds knows of this. */
  async pause(): Promise<void> {
    if (!this.#process.child.kill("SIGSTOP")) throw new Error(`Member ${this.id} cannot be paused: it has ended.`);
    await until(`member ${this.id} stands still`, pausedWithinMs, () => {
      return !this.isAlive || process.platform !== "linux" || stateOf(this.pid) === "T";
    });
    this.#isPaused = true;
    this.#note("paused");
  }

  /** Lets it go on, if it is paused. */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#note("resumed");
    this.#process.child.kill("SIGCONT");
  }

  /** Ends it with SIGKILL, paused or not, and resolves once it is gone and all it logged has been read. */
  async kill(): Promise<void> {
    this.#isKilled ||= this.isAlive;
    await this.#process.kill();
    await this.ended();
  }

  /** Resolves once it is gone and all it logged has been read. */
  async ended(): Promise<void> {
    await this.#process.ended;
    // Whoever inherited its output may keep it open.
    await Promise.race([this.#drained, delay(drainedWithinMs, undefined, { ref: false })]);
  }

  #read(text: string): void {
    const lines = (this.#line + text).split("\n");
    this.#line = lines.pop() ?? "";
    for (const line of lines) this.#take(line);
    if (this.#line.length > maxLineLength) {
      this.#line = "";
      this.#complain(`logged a line of more than ${maxLineLength} characters`);
    }
  }

  #take(line: string): void {
    const entry = parse(line, this.id);
    if (entry === undefined) this.#complain(`logged what is no entry: ${line.slice(0, 200)}`);
    else if (entry.type === "ready") this.#isReady = true;
    else this.#onEntry(entry);
  }

  #note(type: string): void {
    this.#onEntry({ type, member: this.id, machineUs: Number(process.hrtime.bigint() / 1_000n) });
  }

  #complain(problem: string): void {
    if (this.#problems.length < 10) this.#problems.push(problem);
  }
}

function parse(line: string, member: string): FleetEntry | undefined {
  try {
    const entry = JSON.parse(line) as Partial<FleetEntry> | null;
    const { type, machineUs } = entry ?? {};
    const isEntry = typeof type === "string" && typeof machineUs === "number" && Number.isSafeInteger(machineUs);
    return isEntry ? { ...entry, type, member, machineUs } : undefined;
  } catch {
    return undefined;
  }
}
