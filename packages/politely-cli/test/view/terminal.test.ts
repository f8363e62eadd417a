import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { textWidth } from "../../src/view/width.js";
import { Terminal } from "./tmux.js";

const program = join(import.meta.dirname, "fixtures", "liveRun.mjs");
let terminal: Terminal | undefined;

function open(args: string, size = { columns: 100, rows: 30 }): Terminal {
  terminal = new Terminal(`node ${program} ${args}`, size);
  return terminal;
}

afterEach(() => {
  terminal?.close();
  terminal = undefined;
});

const logLines = (lines: readonly string[]): readonly string[] => lines.filter((line) => line.startsWith("log line"));
const isDrawn = (lines: readonly string[]): boolean =>
  logLines(lines).length >= 2 && lines.at(-1)?.startsWith("total") === true;
const isOver = (lines: readonly string[]): boolean => lines.some((line) => line.startsWith("exit code"));

/** The log lines in order, each once, and nothing of a picture between them. */
function expectWholeLog(lines: readonly string[]): void {
  const log = logLines(lines);
  expect(log).toEqual(log.map((_, index) => `log line ${index + 1}`));
  expect(lines.slice(0, log.length)).toEqual(log);
}

/** All lines, those in the history included, once three more log lines were written. */
async function threeLogLinesLater(pane: Terminal): Promise<readonly string[]> {
  const newest = (): number => Number(logLines(pane.lines()).at(-1)?.slice("log line ".length) ?? 0);
  const before = newest();
  await pane.until(() => newest() >= before + 3);
  return pane.lines({ history: true });
}

describe("the live view in a terminal", () => {
  it("keeps its picture at the bottom, and log lines above it", async () => {
    const lines = await open("20 3").until(isDrawn);
    expectWholeLog(lines);
    expect(lines.slice(logLines(lines).length)).toEqual([
      expect.stringMatching(/^api\.例え\.jp +█*░+ +\d+\/1,000 +2\/s {2}next in 400 ms: rate 2\/s$/),
      expect.stringMatching(/^host-0\.example\.com +█*░+ +\d+\/1,000 +2\/s {2}next in 400 ms: rate 2\/s$/),
      expect.stringMatching(/^host-1\.example\.com +█*░+ +\d+\/1,000 +2\/s {2}next in 400 ms: rate 2\/s$/),
      expect.stringMatching(/^total +█*░+ +\d+\/3,000 +\d.*left/),
    ]);
    // Every bar begins in the same column, also after the name with wide characters.
    const bars = lines.slice(-4).map((line) => textWidth(line.slice(0, line.search(/[█░]/))));
    expect(new Set(bars).size).toBe(1);
  });

  it("ends with the summary, the whole log, and the cursor on a line of its own", async () => {
    const lines = await open("2 3").until(isOver);
    expectWholeLog(lines);
    expect(lines).toHaveLength(11);
    expect(lines.slice(-7)).toEqual([
      expect.stringMatching(/^120 of 3,000 fetched, 2,880 left, 120 requests, 12\.3 kB, /),
      "",
      expect.stringMatching(/^host +requests +429s +waited +rate +of limit +limit$/),
      expect.stringMatching(/^api\.例え\.jp +40 +0 +1 s +1\.9\/s +95% +2\/s$/),
      expect.stringMatching(/^host-0\.example\.com /),
      expect.stringMatching(/^host-1\.example\.com /),
      "exit code 0",
    ]);
    expect(terminal?.cursor).toEqual({ isVisible: true, column: 0, row: lines.length });
  });

  it("draws no more than the terminal is high, and never scrolls by itself", async () => {
    const lines = await open("20 60", { columns: 100, rows: 12 }).until(isDrawn);
    for (const line of lines.slice(-9, -2)) expect(line).toMatch(/^(host-|api)/);
    expect(lines.slice(-2)).toEqual(["… and 53 more hosts", expect.stringMatching(/^total/)]);
    await terminal?.until((later) => logLines(later).at(-1) === "log line 6");
    const all = terminal?.lines({ history: true }) ?? [];
    expect(all.filter((line) => line.startsWith("total"))).toHaveLength(1);
    expectWholeLog(all);
  });

  it.each([
    [160, 30],
    [100, 8],
  ])("loses nothing and leaves nothing behind when the terminal becomes %i by %i", async (columns, rows) => {
    const pane = open("20 3");
    await pane.until(isDrawn);
    pane.resize(columns, rows);
    const lines = await threeLogLinesLater(pane);
    expectWholeLog(lines);
    expect(lines).toHaveLength(logLines(lines).length + 4);
    for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(columns);
  });

  // What a terminal itself has moved into its history is out of reach.
  it.each([
    [40, 30],
    [12, 30],
    [60, 12],
  ])("shows the new picture only when the old one does not fit any more into %i by %i", async (columns, rows) => {
    const pane = open("20 3");
    await pane.until(isDrawn);
    pane.resize(columns, rows);
    await threeLogLinesLater(pane);
    const lines = pane.lines();
    expect(lines.slice(0, -4)).toEqual(logLines(lines));
    expect(lines.length).toBeGreaterThan(4);
  });

  it("leaves the terminal in order when the process is killed", async () => {
    await open("60 3").until(isDrawn);
    process.kill(terminal?.childPid ?? 0, "SIGKILL");
    const lines = (await terminal?.until(isOver)) ?? [];
    const totalAt = lines.findIndex((line) => line.startsWith("total"));
    expect(lines[totalAt + 1] ?? "").toMatch(/^(Killed|sh: |exit code 137|.*Killed)/);
    expect(terminal?.cursor.isVisible).toBe(true);
  });

  it("says that it stops at Ctrl-C, and ends with what is left", async () => {
    await open("60 3").until(isDrawn);
    terminal?.press("C-c");
    const lines = (await terminal?.until(isOver)) ?? [];
    expect(lines.some((line) => /^Stopped: \d+ of 3,000 fetched, [\d,]+ left, /.test(line))).toBe(true);
    expect(lines.some((line) => line.startsWith("total"))).toBe(false);
    expect(terminal?.cursor.isVisible).toBe(true);
  });
});
