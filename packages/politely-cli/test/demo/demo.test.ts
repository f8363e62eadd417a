import { spawn } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CallerResult } from "../../src/demo/demoText.js";
import { Terminal } from "../view/tmux.js";

const bin = join(import.meta.dirname, "..", "..", "dist", "bin.js");

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly tookMs: number;
}

/** Runs `politely demo`, and presses Ctrl-C once stdout has `interruptAt`. */
function demo(args: readonly string[], interruptAt?: string): Promise<Ended> {
  const beganAtMs = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [bin, "demo", ...args], { stdio: ["ignore", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => {
      const isDue = interruptAt !== undefined && !stdout.includes(interruptAt);
      stdout += chunk.toString();
      if (isDue && stdout.includes(interruptAt)) child.kill("SIGINT");
    });
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr, tookMs: performance.now() - beganAtMs }));
  });
}

describe.concurrent("politely demo", () => {
  it("shows without a terminal that the loop breaks every rule and Politely none, in less than 40 s", async () => {
    const { code, stdout, stderr, tookMs } = await demo([]);
    // How fast the loop is depends on the machine; that it is too fast does not.
    expect(stdout).toMatch(/^ {2}strict +naive +\d+\/30 +30 +[1-9]\d* +[\d.]+ ms +\d+ {2}no$/m);
    expect(stdout).toMatch(/^ {2}strict +polite +30\/30 +31 +0 +[\d.]+ ms +10 {2}yes$/m);
    expect(stdout).toMatch(/^ {2}penalty +naive +\d+\/30 +30 +[1-9]\d* +[\d.]+ ms +\d+ {2}no$/m);
    expect(stdout).toMatch(/^ {2}penalty +polite +30\/30 +31 +0 +[\d.]+ ms +5 {2}yes$/m);
    expect(stdout).toMatch(/^ {2}slow +naive +30\/30 +30 +0 +[\d.]+ ms +\d+ {2}no$/m);
    expect(stdout).toMatch(/^ {2}slow +polite +30\/30 +31 +0 +5\d\d ms +2 {2}yes$/m);
    expect(`${stdout}${stderr}`).not.toContain("\u001b");
    for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
    expect(stderr).toMatch(/^\d+ of 90 done \(\d+%\), /);
    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(40_000);
  });

  it("tells machines the same in one JSON object, and nothing else when it is to be quiet", async () => {
    const { code, stdout, stderr } = await demo(["--json", "--quiet"]);
    const { callers } = JSON.parse(stdout) as { readonly callers: readonly CallerResult[] };
    expect(callers.map(({ caller, verdicts }) => [caller, verdicts.map(({ isKept }) => isKept)])).toEqual([
      ["naive", [false, false, false]],
      ["polite", [true, true, true]],
    ]);
    expect(stderr).toBe("");
    expect(code).toBe(0);
  });

  it("ends at Ctrl-C with one line and exit code 1", async () => {
    const { code, stdout, stderr } = await demo(["--quiet"], "polite.fetch(url)");
    expect(stderr).toBe("politely: stopped before the demonstration was over\n");
    expect(stdout).not.toContain("As each site counted");
    expect(code).toBe(1);
  });

  it("draws bars in a terminal, and leaves the last of them above the table", async () => {
    const terminal = new Terminal(`${process.execPath} ${bin} demo`, { columns: 100, rows: 50 });
    try {
      const during = await terminal.until((lines) =>
        lines.some((line) => /^slow .* [1-9]\d?\/30 .*next in \d+ ms/.test(line)),
      );
      expect(during.some((line) => /^strict +█+▒+ +30\/30 .*done$/.test(line))).toBe(true);
      expect(during.at(-1)).toMatch(/^total .* left, \d+%/);
      const after = await terminal.until((lines) => lines.some((line) => line.startsWith("exit code")));
      expect(after.filter((line) => line.startsWith("total "))).toHaveLength(2);
      expect(after.filter((line) => /^(strict|penalty|slow) +█+ +30\/30 .*done$/.test(line))).toHaveLength(4);
      expect(after).toContain("exit code 0");
      expect(terminal.cursor.isVisible).toBe(true);
    } finally {
      terminal.close();
    }
  });
});
