import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { Place } from "../get/place.js";
import { pages, startSite } from "../get/site.js";

const command = fileURLToPath(new URL("../../dist/bin.js", import.meta.url));

interface Run {
  readonly child: ChildProcess;
  readonly text: { stdout: string; stderr: string };
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

/** Starts the built command with all its streams open. It ends with the process that started it. */
function start(cwd: string, args: readonly string[]): Run {
  const child = spawn(process.execPath, [command, ...args], { cwd, stdio: "pipe" });
  const text = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].on("data", (chunk: Buffer) => {
      text[name] += chunk.toString();
    });
  }
  const kill = (): void => {
    child.kill("SIGKILL");
  };
  process.once("exit", kill);
  const end = async (): Promise<number | NodeJS.Signals | null> => {
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    process.off("exit", kill);
    return code ?? signal;
  };
  return { child, text, ended: end() };
}

describe("Ctrl-C", () => {
  it.each([
    ["SIGINT", "get", /^politely: interrupted while stdin was read, after line \d+; nothing was begun\.\n$/],
    ["SIGTERM", "get", /^politely: interrupted while stdin was read, after line \d+; nothing was begun\.\n$/],
    ["SIGINT", "plan", /^politely: interrupted while stdin was read, after line \d+; nothing was begun\.\n$/],
    ["SIGTERM", "audit", /^politely: interrupted while stdin was read; nothing was judged\.\n$/],
  ] as const)("%s ends %s while it reads stdin", async (signal, name, message) => {
    using place = new Place();
    const { child, text, ended } = start(place.path, [name, "-"]);
    const line = name === "audit" ? '{"host":"a.org","time":"2026-01-31T10:00:00Z"}\n' : "a.org\n";
    // More than a pipe holds: once all of it is written, the command is reading.
    await new Promise((resolve) => child.stdin?.write(line.repeat(Math.ceil(1_000_000 / line.length)), resolve));
    child.kill(signal);
    expect(await ended).toBe(1);
    expect(text.stderr).toMatch(message);
  });

  it("ends the process at the third one, whatever it waits for", async () => {
    using place = new Place();
    // A store that is connected and says nothing.
    const silent = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as { port: number };
    const connected = once(silent, "connection");
    const { child, ended } = start(place.path, ["get", "a.org", "--share", `redis://127.0.0.1:${port}`]);
    await connected;
    for (let times = 0; times < 3; times++) {
      child.kill("SIGINT");
      await delay(200);
    }
    // 1 where what it waits for heard of the second one in time.
    expect([1, 130]).toContain(await ended);
    silent.close();
  });
});

describe("a reader that goes away", () => {
  it("stops the work when it read stdout, and what is left is said by the exit code", async () => {
    using place = new Place();
    await using site = await startSite({ delayMs: 5 });
    place.file("list.txt", pages(site, 300).join("\n"));
    place.file("politely.json", JSON.stringify({ hosts: { "127.0.0.1": { rate: "100/s", burst: 5 } } }));
    const { child, text, ended } = start(place.path, ["get", "list.txt", "--no-robots", "--json"]);
    await once(child.stdout as NodeJS.ReadableStream, "data");
    child.stdout?.destroy();
    expect(await ended).toBe(1);
    expect(text.stderr).toMatch(/of 300 left; run the same command again to go on\.\n$/);
    expect(site.seen.length).toBeLessThan(300);
    expect(place.index("politely-out").length).toBe(site.seen.length);
  });

  it("does not matter when it read stderr", async () => {
    using place = new Place();
    await using site = await startSite();
    place.file("list.txt", pages(site, 300).join("\n"));
    place.file("politely.json", JSON.stringify({ hosts: { "127.0.0.1": { rate: "100/s", burst: 5 } } }));
    const { child, ended } = start(place.path, ["get", "list.txt", "--no-robots"]);
    child.stderr?.destroy();
    expect(await ended).toBe(0);
    expect(place.index("politely-out")).toHaveLength(300);
  });

  it("is told by the exit code where the output is all there is", async () => {
    using place = new Place();
    const { child, text, ended } = start(place.path, ["presets", "--json"]);
    child.stdout?.destroy();
    expect(await ended).toBe(1);
    expect(text.stderr).toBe("");
  });
});
