import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { Stage } from "./stage.js";
import { Traffic } from "./traffic.js";

it("draws only what is in sight of 5,000 hosts, while 2,000 rows a second change", async () => {
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
  const { gaps, lines } = await scroll(page, 6_000);
  const usedMs = (await processor()) - before;
  traffic.stop();
  const perSecond = (gaps.length * 1_000) / gaps.reduce((sum, gap) => sum + gap, 0);
  const perFrameMs = usedMs / gaps.length;
  const longestMs = Math.max(...gaps);
  console.info(
    `scrolling: ${perSecond.toFixed(1)} frames a second, the longest ${longestMs.toFixed(0)} ms, ${perFrameMs.toFixed(1)} ms of processor each, ${lines} lines drawn`,
  );
  expect(lines).toBeGreaterThan(10);
  expect(lines).toBeLessThan(80);
  expect(problems).toEqual([]);
}, 60_000);

/** Scrolls down and up again, about 10,000 pixels a second, and tells how long each frame took and how many lines there are. */
function scroll(page: Page, forMs: number): Promise<{ gaps: number[]; lines: number }> {
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
    };
  }, forMs);
}

/** Makes the function that reads the processor time of the page's main thread. */
async function processorOf(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return (metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN) * 1_000;
  };
}
