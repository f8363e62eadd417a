import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { Stage } from "./stage.js";
import { newsPolicy, Traffic } from "./traffic.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds wrong, one line each. */
async function faults(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const results = await page.evaluate(() =>
    (globalThis as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run(),
  );
  expect(results.passes.length, "rules that axe found kept").toBeGreaterThan(10);
  return results.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} ${target.join(" ")} ${failureSummary ?? ""}`),
  );
}

it("has nothing that axe finds wrong: light and dark, wide and on a phone, with a host open, empty, and asking for the token", async () => {
  await using stage = await Stage.open();
  await using service = await stage.serve(newsPolicy);
  await using empty = await stage.serve(newsPolicy);
  await using locked = await stage.serve(newsPolicy, { token: "right-token" });
  const traffic = new Traffic(service.limiter);
  traffic.news();
  const found: Record<string, readonly string[]> = {};
  for (const colorScheme of ["light", "dark"] as const) {
    for (const width of [1280, 360]) {
      const options = { colorScheme, viewport: { width, height: 740 } };
      await using look = await stage.look(service.url, options);
      const { page } = look;
      await page.locator(".line .name").first().waitFor();
      found[`${colorScheme} ${width}`] = await faults(page);
      await page.locator(".line .name").first().click();
      await page.locator(".causes li, .limits button").first().waitFor();
      found[`${colorScheme} ${width} open`] = await faults(page);
      expect(await page.evaluate(() => document.documentElement.scrollWidth), "nothing is wider than the page").toBe(
        width,
      );
    }
    await using first = await stage.look(empty.url, { colorScheme });
    await first.page.getByText("No host yet").waitFor();
    found[`${colorScheme} empty`] = await faults(first.page);
    await using asking = await stage.look(locked.url, { colorScheme });
    await asking.page.getByText("asks for its token").waitFor();
    found[`${colorScheme} token`] = await faults(asking.page);
  }
  traffic.stop();
  expect(Object.keys(found)).toHaveLength(12);
  expect(Object.entries(found).filter(([, list]) => list.length > 0)).toEqual([]);
}, 120_000);
