import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { afterEach, describe, expect, it } from "vitest";
import { guardedProcess } from "./guardedProcess.js";
import { isAlive } from "./isAlive.js";
import { until } from "./until.js";

const folders: string[] = [];
const pids: number[] = [];
afterEach(async () => {
  for (const pid of pids.splice(0).filter(isAlive)) process.kill(pid, "SIGKILL");
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
});

/** A process that does nothing, and says when it has begun. `deaf`: it does not end when asked to. */
async function sleeper(deaf = false) {
  const code = `${deaf ? "process.on('SIGTERM', () => {});" : ""} setInterval(() => {}, 1_000); console.log("here");`;
  const guarded = guardedProcess(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  pids.push(guarded.pid);
  if (guarded.child.stdout !== null) await once(guarded.child.stdout, "data");
  return guarded;
}

describe("a guarded process", () => {
  it("ends when asked to, and is gone then", async () => {
    const guarded = await sleeper();
    expect(guarded.ending).toBeUndefined();
    await guarded.end();
    expect(isAlive(guarded.pid)).toBe(false);
    expect(guarded.ending).toEqual({ code: null, signal: "SIGTERM", isMissing: false });
    await guarded.end();
  });

  it("can be killed while it is paused, and when it is deaf", async () => {
    const guarded = await sleeper(true);
    guarded.child.kill("SIGSTOP");
    await guarded.kill();
    expect(guarded.ending).toMatchObject({ signal: "SIGKILL" });
    expect(isAlive(guarded.pid)).toBe(false);
  });

  it("that cannot be found says so", async () => {
    const guarded = guardedProcess("no-such-program", [], { stdio: "ignore" });
    expect(await guarded.ended).toMatchObject({ isMissing: true });
    await guarded.end();
  });

  it.each(["SIGKILL", "SIGINT"] as const)("ends with the process that started it, also by %s", async (signal) => {
    const { parent, pid } = await startElsewhere();
    pids.push(pid);
    expect(isAlive(pid)).toBe(true);
    // Even one that cannot react.
    process.kill(pid, "SIGSTOP");
    parent.kill(signal);
    await once(parent, "exit");
    await until("the guarded process is gone", 5_000, () => !isAlive(pid));
  });
});

/** Starts a guarded process from a process of its own, which runs this very file. */
async function startElsewhere() {
  const folder = await mkdtemp(join(tmpdir(), "politely-guarded-"));
  folders.push(folder);
  const text = await readFile(fileURLToPath(new URL("guardedProcess.ts", import.meta.url)), "utf8");
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };
  await writeFile(
    join(folder, "guardedProcess.mjs"),
    ts.transpileModule(text, { compilerOptions: options }).outputText,
  );
  const main = [
    'import { guardedProcess } from "./guardedProcess.mjs";',
    `const code = 'setInterval(() => {}, 1000); console.log("here")';`,
    'const { pid, child } = guardedProcess(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "ignore"] });',
    // Once it has begun, setpriv has done its part: what is stopped before that is guarded by nobody yet.
    'child.stdout.once("data", () => console.log(pid));',
    "setInterval(() => {}, 1_000);",
  ];
  await writeFile(join(folder, "main.mjs"), main.join("\n"));
  const parent = spawn(process.execPath, ["main.mjs"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  return { parent, pid: Number(line.toString()) };
}
