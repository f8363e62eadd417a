import { WorkError } from "../errors.js";
import type { ExitCode, Io } from "../io.js";
import { paintFor } from "../paint.js";
import { Eta } from "../view/eta.js";
import { liveLines } from "../view/liveLines.js";
import { sizeOf, stderrLook } from "../view/look.js";
import { progressLine } from "../view/plainView.js";
import { Screen } from "../view/screen.js";
import { machineTicker } from "../view/ticker.js";
import { type Caller, naiveCaller, politeCaller, politePolicy } from "./callers.js";
import { type CallerResult, callerLine, introLines, policyLines, resultLine, verdictLines } from "./demoText.js";
import { type DemoSite, openSites } from "./sites.js";
import { Tally } from "./tally.js";
import { judge } from "./verdict.js";

/** How the demonstration is given. */
export interface DemoOptions {
  /** One JSON object on stdout instead of the text. Default false. */
  readonly isJson?: boolean | undefined;
  /** No picture while it runs. Default false. */
  readonly isQuiet?: boolean | undefined;
  /** How many pages each site has. Default 30; with more than 60 it takes longer than 40 s. */
  readonly pages?: number | undefined;
}

const PAGES = 30;
const FRAME_MS = 100;
const LINE_MS = 5_000;

/**
 * Calls three local sites naively and politely, shows both, and prints what each site counted.
 *
 * About 17 s with 30 pages a site, no network. Resolves to 0 when the polite caller got every page and kept every rule, by the audit of the
 * sites' own logs; else to 1. The first Ctrl-C ends it with a `WorkError`.
 */
export async function runDemo(io: Io, options: DemoOptions = {}): Promise<ExitCode> {
  const sites = await openSites(options.pages ?? PAGES);
  const paint = paintFor(io, "stdout");
  const say = (lines: readonly string[]): void => {
    if (options.isJson !== true) io.stdout.write(lines.map((line) => `${line}\n`).join(""));
  };
  try {
    say([...introLines(sites, paint), callerLine(naiveCaller, paint)]);
    const naive = await visit(naiveCaller, sites, io, options);
    say([resultLine(naive), "", callerLine(politeCaller, paint), ...policyLines(sites, paint)]);
    const polite = await visit(politeCaller, sites, io, options);
    const results = [naive, polite];
    say([resultLine(polite), "", ...verdictLines(results, paint)]);
    if (options.isJson === true) io.stdout.write(`${JSON.stringify({ callers: results })}\n`);
    return polite.verdicts.every(({ isKept, pages, wanted }) => isKept && pages === wanted) ? 0 : 1;
  } catch (error) {
    if (io.interrupted.aborted) throw new WorkError("stopped before the demonstration was over");
    throw error;
  } finally {
    await Promise.all(sites.map((site) => site.close()));
  }
}

async function visit(
  caller: Caller,
  sites: readonly DemoSite[],
  io: Io,
  { isQuiet }: DemoOptions,
): Promise<CallerResult> {
  const tally = new Tally(sites);
  const beganAtMs = performance.now();
  const close = isQuiet === true ? (): void => undefined : show(tally, sites, io);
  try {
    await caller.call(sites, tally, io.interrupted);
  } finally {
    close();
  }
  const tookMs = performance.now() - beganAtMs;
  return { caller: caller.name, tookMs, verdicts: sites.map((site) => judge(site, caller)) };
}

/** Draws the tally until the function it returns is called: bars in a terminal, which stay, or a line every five seconds. */
function show(tally: Tally, sites: readonly DemoSite[], io: Io): () => void {
  const eta = new Eta(() => performance.now());
  const screen = new Screen(io.stderr, () => sizeOf(io));
  const snapshot = (): ReturnType<Tally["snapshot"]> => {
    const now = tally.snapshot(performance.now());
    const left = new Map(now.hosts.map(({ total, done }, index) => [sites[index]?.host ?? "", total - done]));
    const progress = { ...now, policy: politePolicy(sites), left: () => left };
    eta.work(progress);
    const paces = now.hosts.map(({ key, total, done }) => ({ key, left: total - done }));
    return { ...now, leftMs: eta.leftMs(progress, paces, []) };
  };
  const draw = (): void => {
    const look = stderrLook(io);
    screen.draw(liveLines(snapshot(), { ...look, columns: Math.max(1, look.columns - 1) }));
  };
  const write = (): void => {
    const now = snapshot();
    io.stderr.write(`${progressLine(now, { startsPerSec: now.startsPerSec, leftMs: now.leftMs, coolingCount: 0 })}\n`);
  };
  const stop = io.isTerminal ? machineTicker.every(FRAME_MS, draw) : machineTicker.every(LINE_MS, write);
  return () => {
    stop();
    if (io.isTerminal) draw();
  };
}
