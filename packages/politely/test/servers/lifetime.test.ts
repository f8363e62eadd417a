import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { afterEach, describe, expect, it, vi } from "vitest";
import { startHaproxy } from "./haproxy.js";
import { startNginx } from "./nginx.js";
import { type Server, startServer } from "./server.js";

const starts: readonly [string, () => Promise<Server>][] = [
  ["nginx", () => startNginx({ limits: [{}, {}] })],
  ["haproxy", () => startHaproxy({ limits: [{ count: 5 }, { count: 5 }] })],
];

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe.each(starts)("%s", (_name, start) => {
  it("stops, with a connection still open, and leaves no process and no folder", async () => {
    const server = await start();
    await (await fetch(`${server.hosts[1].origin}/`)).text(); // kept alive by fetch
    expect(isAlive(server.pid)).toBe(true);
    expect(existsSync(server.folder)).toBe(true);
    await server.stop();
    expect(isAlive(server.pid)).toBe(false);
    expect(existsSync(server.folder)).toBe(false);
    await expect(fetch(`${server.hosts[1].origin}/`)).rejects.toThrow();
    await server.stop();
  });

  it("runs beside another of its kind, with a log of its own", async () => {
    await using one = await start();
    await using two = await start();
    await (await fetch(`${one.hosts[0].origin}/one`)).text();
    await (await fetch(`${two.hosts[0].origin}/two`)).text();
    expect((await one.log()).map(({ path }) => path)).toEqual(["/one"]);
    expect((await two.log()).map(({ path }) => path)).toEqual(["/two"]);
  });

  it("says that it cannot read the log of a server that is gone", async () => {
    const server = await start();
    await server.stop();
    await expect(server.log()).rejects.toThrow("does not answer any more");
  });
});

describe("a server", () => {
  const folders: string[] = [];
  const pids: number[] = [];
  afterEach(async () => {
    for (const pid of pids.splice(0).filter(isAlive)) process.kill(pid, "SIGKILL");
    await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
  });

  it("ends with the process that started it, even when that is killed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "politely-lifetime-"));
    folders.push(folder);
    const { child, server } = await startElsewhere(folder);
    folders.push(server.folder);
    pids.push(server.pid);
    expect(isAlive(server.pid)).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    await vi.waitFor(() => expect(isAlive(server.pid)).toBe(false), { timeout: 5_000, interval: 10 });
  });

  it("that does not start says why", async () => {
    const broken = { hostCount: 1, retryAfterSec: 2, readLine: () => expect.fail("nothing is logged") };
    const files = { "nginx.conf": "daemon sometimes;" };
    const args = ["-e", "stderr", "-c", "nginx.conf", "-p", "."];
    const start = startServer({ name: "nginx", files: () => files, args: () => args, ...broken });
    await expect(start).rejects.toThrow(/nginx did not start.*invalid value "sometimes"/s);
  });

  it("that is not installed is named, with what to do", async () => {
    const missing = { name: "no-such-server", hostCount: 1, retryAfterSec: 2, files: () => ({}), args: () => [] };
    const start = startServer({ ...missing, readLine: () => expect.fail("nothing is logged") });
    await expect(start).rejects.toThrow(/no-such-server did not start.*node scripts\/servers\.mjs/);
  });
});

/** Starts nginx from a process of its own, which runs these very files, and tells which process and folder that made. */
async function startElsewhere(folder: string) {
  for (const name of ["server", "nginx"]) {
    const text = await readFile(fileURLToPath(new URL(`${name}.ts`, import.meta.url)), "utf8");
    const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };
    await writeFile(join(folder, `${name}.js`), ts.transpileModule(text, { compilerOptions: options }).outputText);
  }
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  const main = [
    'import { startNginx } from "./nginx.js";',
    "const { pid, folder } = await startNginx({ limits: [{}] });",
    "console.log(JSON.stringify({ pid, folder }));",
    "setInterval(() => {}, 1_000);",
  ];
  await writeFile(join(folder, "main.js"), main.join("\n"));
  const child = spawn(process.execPath, ["main.js"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return { child, server: JSON.parse(line.toString()) as { pid: number; folder: string } };
}
