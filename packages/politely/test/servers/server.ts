import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, rmSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Limits } from "../../src/policy/types.js";

const portAttempts = 5;
const readyWithinMs = 10_000;
const loggedWithinMs = 5_000;
const stoppedWithinMs = 5_000;
const pollMs = 5;
const maxHosts = 200;
const controlAddress = "127.0.0.1";

/** One site of a server: an address of its own, which the policy names. `origin` has the port as well. */
export interface ServerHost {
  /** `"127.0.0.2"`, and so on. */
  readonly address: string;
  /** `"http://127.0.0.2:40123"`, without a slash at the end. */
  readonly origin: string;
}

/** One request as the server itself wrote it down. */
export interface LogRecord {
  /** When the server took it up, on the wall clock, in whole milliseconds or finer. */
  readonly atMs: number;
  readonly status: number;
  /** The address it came to. */
  readonly host: string;
  /** With the query, as sent. */
  readonly path: string;
  /** Empty when none was sent. */
  readonly userAgent: string;
}

/** A real server that listens on loopback. It ends with `stop`, and at the latest with the process that started it. */
export interface Server extends AsyncDisposable {
  readonly pid: number;
  /** What holds its configuration and logs. Gone after `stop`; left behind when the process is killed. */
  readonly folder: string;
  readonly hosts: readonly ServerHost[];
  /** What its 429s carry as Retry-After. */
  readonly retryAfterMs: number;
  /** Every request whose answer has arrived in full, by arrival; one still under way may be missing. Rejects after 5 s if the log does not catch up. */
  log(): Promise<LogRecord[]>;
  /** Ends the process, waits until it is gone, and removes the folder. A second call does nothing. */
  stop(): Promise<void>;
}

/** Where one start of a server takes place. */
export interface Place {
  readonly folder: string;
  readonly port: number;
  /** One for each host. */
  readonly addresses: readonly string[];
  /** Answers without limits. Not a host, and not in the log. */
  readonly controlAddress: string;
}

/** What has to be known of a program to start it. Its log is `access.log` in the folder, or its output, which goes to that file. */
export interface ServerProgram {
  readonly name: string;
  readonly hostCount: number;
  readonly retryAfterSec: number;
  /** Texts by name, written into the folder before the start. */
  files(place: Place): Readonly<Record<string, string>>;
  args(place: Place): readonly string[];
  /** Reads one line of the log, without its end. */
  readLine(line: string): LogRecord;
}

/** The rules that give every host of `server` the same limits. Loopback is exempt from a policy that does not name it. */
export function hostRules(server: Server, limits: Limits): Record<string, Limits> {
  return Object.fromEntries(server.hosts.map(({ address }) => [address, limits]));
}

/**
 * Starts `program` on a free port, the same on 127.0.0.2, 127.0.0.3 and so on, and resolves once it answers.
 *
 * Tries up to five ports, since another process may take one first. Rejects with what the program said when it ends
 * early, or is silent for 10 s. Linux only: elsewhere 127.0.0.2 is no address of the machine.
 */
export async function startServer(program: ServerProgram): Promise<Server> {
  if (!(Number.isInteger(program.hostCount) && program.hostCount >= 1 && program.hostCount <= maxHosts)) {
    throw new RangeError(`${program.name} needs 1 to ${maxHosts} hosts; got ${program.hostCount}`);
  }
  for (let attempt = 1; ; attempt++) {
    const running = await launch(program);
    const problem = await waitUntilReady(running);
    if (problem === undefined) return serverOf(running);
    await end(running);
    if (attempt === portAttempts || !/address already in use|cannot bind/i.test(problem)) throw new Error(problem);
  }
}

/** The command that runs `program` so that the kernel ends it when the thread that started it dies, however that happens. */
function guarded(program: string, args: readonly string[]): readonly [string, string[]] {
  return ["setpriv", ["--pdeathsig", "KILL", program, ...args]];
}

interface Running {
  readonly program: ServerProgram;
  readonly place: Place;
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  readonly onExit: () => void;
}

async function launch(program: ServerProgram): Promise<Running> {
  const folder = await mkdtemp(join(tmpdir(), `politely-${program.name}-`));
  const addresses = Array.from({ length: program.hostCount }, (_, index) => `127.0.0.${index + 2}`);
  const place: Place = { folder, port: await freePort(), addresses, controlAddress };
  const texts = Object.entries({ "access.log": "", "error.log": "", ...program.files(place) });
  await Promise.all(texts.map(([name, text]) => writeFile(join(folder, name), text)));

  const [command, args] = guarded(program.name, program.args(place));
  const out = openSync(join(folder, "access.log"), "a");
  const error = openSync(join(folder, "error.log"), "a");
  // Debian keeps servers where only root's PATH looks.
  const env = { ...process.env, PATH: `${process.env.PATH ?? ""}:/usr/local/sbin:/usr/sbin:/sbin` };
  const child = spawn(command, args, { cwd: folder, env, stdio: ["ignore", out, error] });
  closeSync(out);
  closeSync(error);
  // A start that fails ends with "error" alone; `once` rejects then.
  const exited = once(child, "exit").catch((problem: unknown) => problem);
  child.unref();

  const onExit = (): void => {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", onExit);
  return { program, place, child, exited, onExit };
}

/** What went wrong, or undefined once the server answers. */
async function waitUntilReady(running: Running): Promise<string | undefined> {
  const { program, place } = running;
  const deadlineMs = performance.now() + readyWithinMs;
  while (performance.now() < deadlineMs) {
    if (hasEnded(running)) {
      const said = await readFile(join(place.folder, "error.log"), "utf8");
      return `${program.name} did not start. If it is missing, run: node scripts/servers.mjs. It said: ${said.slice(-1_000)}`;
    }
    // The log tells that it was this server that answered, and not another one that took the port first.
    const isAnswered = await answers(`http://${controlAddress}:${place.port}/ready`);
    if (isAnswered && (await readFile(join(place.folder, "access.log"), "utf8")) !== "") return undefined;
    await delay(pollMs);
  }
  return `${program.name} did not answer on port ${place.port} within ${readyWithinMs} ms.`;
}

function serverOf(running: Running): Server {
  const { place, program, child } = running;
  let marks = 0;
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= end(running));

  return {
    pid: child.pid ?? 0,
    folder: place.folder,
    hosts: place.addresses.map((address) => ({ address, origin: `http://${address}:${place.port}` })),
    retryAfterMs: program.retryAfterSec * 1_000,
    async log() {
      marks += 1;
      return readLog(running, `/mark-${marks}`);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/**
 * Asks for `mark` and reads the log once it is in there.
 *
 * The server has one thread and writes in order, so what it answered before the mark stands before it.
 */
async function readLog({ program, place }: Running, mark: string): Promise<LogRecord[]> {
  if (!(await answers(`http://${controlAddress}:${place.port}${mark}`))) {
    throw new Error(`${program.name} does not answer any more, so its log cannot be complete. See ${place.folder}.`);
  }
  const deadlineMs = performance.now() + loggedWithinMs;
  for (;;) {
    const text = await readFile(join(place.folder, "access.log"), "utf8");
    // The last piece is empty, or a line that is still being written.
    const records = text
      .split("\n")
      .slice(0, -1)
      .map((line) => program.readLine(line));
    if (records.some(({ host, path }) => host === controlAddress && path === mark)) {
      return records.filter(({ host }) => host !== controlAddress).toSorted((a, b) => a.atMs - b.atMs);
    }
    if (performance.now() > deadlineMs) {
      throw new Error(`${program.name} did not write its log within ${loggedWithinMs} ms. See ${place.folder}.`);
    }
    await delay(pollMs);
  }
}

async function end({ child, exited, onExit, place }: Running): Promise<void> {
  process.off("exit", onExit);
  child.ref();
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), stoppedWithinMs);
  await exited;
  clearTimeout(timer);
  await rm(place.folder, { recursive: true, force: true });
}

function hasEnded({ child }: Running): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
}

/** Sends one request on a connection of its own, past any `fetch` or agent that a test has changed. */
function answers(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const sent = request(url, { agent: false, timeout: 1_000 }, (response) => {
      response.resume().once("end", () => resolve(true));
    });
    sent.once("timeout", () => sent.destroy());
    sent.once("error", () => resolve(false));
    sent.end();
  });
}

/** A port that is free on every address at this moment. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "0.0.0.0");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("The machine gave no port; try again.");
  return address.port;
}
