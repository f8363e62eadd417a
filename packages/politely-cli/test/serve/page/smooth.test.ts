import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { Stage } from "./stage.js";
import { Traffic } from "./traffic.js";

/** A frame at 50 a second. */
const FRAME_MS = 20;

it("draws only what is in sight of 5,000 hosts, while 2,000 rows a second change, and leaves most of a frame unused", async () => {
  await using stage = await Stage.open();
  await using service = await stage.serve({ default: { rate: "2/s", burst: 2, cooldown: "20s" } });
  const traffic = new Traffic(service.limiter);
  traffic.crowd(5_000, 2_400);
  await using look = await stage.look(service.url);
  const { page, problems } = look;
  await page.getByText("5,000 hosts").waitFor({ timeout: 20_000 });
  // The first time everything is drawn for the first time.
  await scroll(page, 1_000);
  const processor = await processorOf(page);
  const before = await processor();
  const { gaps, lines, elements } = await scroll(page, 3_000);
  const after = await processor();
  traffic.stop();
  const perFrame = (read: (used: Used) => number): number => (read(after) - read(before)) / gaps.length;
  const [scriptMs, layoutMs, wholeMs] = [
    perFrame((used) => used.scriptMs),
    perFrame((used) => used.layoutMs),
    perFrame((used) => used.wholeMs),
  ];
  const perSecond = (gaps.length * 1_000) / gaps.reduce((sum, gap) => sum + gap, 0);
  console.info(
    `scrolling: ${perSecond.toFixed(1)} frames a second, the longest ${Math.max(...gaps).toFixed(0)} ms; processor time of a frame: ${scriptMs.toFixed(1)} ms script, ${layoutMs.toFixed(1)} ms style and layout, ${wholeMs.toFixed(1)} ms in all; ${lines} lines, ${elements} elements`,
  );
  // How many frames there are is up to the machine and its other work; what each of them costs is not.
  expect(scriptMs).toBeLessThan(FRAME_MS / 5);
  expect(scriptMs + layoutMs).toBeLessThan(FRAME_MS / 2);
  expect(wholeMs).toBeLessThan(FRAME_MS);
  expect(lines).toBeGreaterThan(10);
  expect(lines).toBeLessThan(80);
  expect(elements).toBeLessThan(2_000);
  expect(problems).toEqual([]);
}, 60_000);

/** Scrolls down and up again, about 10,000 pixels a second, and tells how long each frame took, how many lines there are, and how many elements the page has. */
function scroll(page: Page, forMs: number): Promise<{ gaps: number[]; lines: number; elements: number }> {
  return page.evaluate(async (durationMs) => {
    const list = document.querySelector(".hosts") as HTMLElement;
    const times: number[] = [];
    const beganMs = performance.now();
    let stepPx = 160;
    await new Promise<void>((resolve) => {
      const step = (nowMs: number): void => {
        times.push(nowMs);
        if (list.scrollTop + list.clientHeight >= list.scrollHeight - 200) stepPx = -160;
        if (list.scrollTop === 0) stepPx = 160;
        list.scrollTop += stepPx;
        if (nowMs - beganMs < durationMs) requestAnimationFrame(step);
        else resolve();
      };
      requestAnimationFrame(step);
    });
    return {
      gaps: times.slice(1).map((time, index) => time - times[index]),
      lines: list.querySelectorAll(".line").length,
      elements: document.querySelectorAll("*").length,
    };
  }, forMs);
}

/** Processor time of the page's main thread since it began. */
interface Used {
  readonly scriptMs: number;
  /** Style too. */
  readonly layoutMs: number;
  /** All of it, painting included. */
  readonly wholeMs: number;
}

/** Makes the function that reads the processor time of the page's main thread: time in which others had the processor does not count. */
async function processorOf(page: Page): Promise<() => Promise<Used>> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    const read = (wanted: string): number => (metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN) * 1_000;
    return {
      scriptMs: read("ScriptDuration"),
      layoutMs: read("LayoutDuration") + read("RecalcStyleDuration"),
      wholeMs: read("TaskDuration"),
    };
  };
}
