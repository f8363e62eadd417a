import { mkdirSync } from "node:fs";
import { expect, it } from "vitest";
import { Stage } from "./stage.js";
import { newsPolicy, Traffic } from "./traffic.js";

const folder = process.env.POLITELY_SHOTS;

// Pictures are for people: POLITELY_SHOTS=<folder> makes them.
it.runIf(folder !== undefined)("makes pictures of the page to be looked at", async () => {
  mkdirSync(folder ?? "", { recursive: true });
  const shot = (name: string) => ({ path: `${folder}/${name}.png` });
  await using stage = await Stage.open();
  {
    await using empty = await stage.serve(newsPolicy);
    const { page } = await stage.look(empty.url);
    await page.getByText("No host yet").waitFor();
    await page.screenshot(shot("empty"));
  }
  {
    await using locked = await stage.serve(newsPolicy, { token: "secret-of-this-test" });
    const { page } = await stage.look(locked.url);
    await page.getByLabel("Token", { exact: true }).first().waitFor();
    await page.screenshot(shot("token"));
  }
  {
    await using service = await stage.serve(newsPolicy);
    const traffic = new Traffic(service.limiter);
    traffic.news();
    const { page, problems } = await stage.look(service.url, { colorScheme: "light" });
    await page.waitForTimeout(14_000);
    await page.screenshot(shot("light"));
    await page.locator(".name", { hasText: "old.reddit.com" }).click();
    await page.waitForTimeout(2_500);
    await page.screenshot(shot("detail"));
    await page.emulateMedia({ colorScheme: "dark" });
    await page.waitForTimeout(1_200);
    await page.screenshot(shot("dark-detail"));
    await page.keyboard.press("Escape");
    await page.waitForTimeout(300);
    await page.screenshot(shot("dark"));
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 360, height: 740 });
    await page.waitForTimeout(1_200);
    await page.screenshot(shot("phone"));
    await page.locator(".name", { hasText: "export.arxiv.org" }).click();
    await page.waitForTimeout(1_500);
    await page.screenshot(shot("phone-detail"));
    expect(problems).toEqual([]);
    traffic.stop();
  }
  {
    await using service = await stage.serve({ default: { rate: "2/s", burst: 2, cooldown: "20s" } });
    const traffic = new Traffic(service.limiter);
    traffic.crowd(5_000, 1_000);
    const { page } = await stage.look(service.url);
    await page.waitForTimeout(8_000);
    await page.screenshot(shot("crowd"));
    traffic.stop();
  }
});
