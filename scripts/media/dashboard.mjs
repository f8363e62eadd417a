import { spawn } from "node:child_process";
import { setMaxListeners } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { chromium } from "playwright-core";
import { makeTraffic, makeTrouble, policy } from "./traffic.mjs";

const view = { viewport: { width: 1080, height: 640 }, deviceScaleFactor: 1.4 };
/** The timeline shows two minutes; the last part of them is with trouble. */
const calmMs = 95_000;
const troubleMs = 12_000;

/**
 * Starts `politely serve` in a process of its own, has programs call sites through it for two minutes, and takes a picture of its page
 * in light and in dark.
 *
 * @param {string} command the built command
 * @param {string} folder where the pictures go
 * @returns {Promise<string[]>} their paths
 */
export async function shootDashboard(command, folder) {
  const stop = new AbortController();
  // Every caller listens for the end.
  setMaxListeners(200, stop.signal);
  const service = await startService(command);
  try {
    const traffic = makeTraffic(service.url, stop.signal);
    await Promise.race([traffic, delay(calmMs)]);
    await makeTrouble(service.url, stop.signal);
    await Promise.race([traffic, delay(troubleMs)]);
    return await shoot(service.url, folder);
  } finally {
    stop.abort();
    service.end();
  }
}

/** @param {string} url @param {string} folder */
async function shoot(url, folder) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // Root has no sandbox, and small machines have little shared memory.
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  try {
    const files = [];
    for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
      const context = await browser.newContext({ ...view, colorScheme });
      const page = await context.newPage();
      await page.goto(url);
      await page.locator(".name").first().waitFor();
      await delay(2_500);
      const path = join(folder, colorScheme === "light" ? "dashboard.png" : "dashboard-dark.png");
      await page.screenshot({ path });
      await context.close();
      files.push(path);
    }
    return files;
  } finally {
    await browser.close();
  }
}

/** @param {string} command */
async function startService(command) {
  const folder = mkdtempSync(join(tmpdir(), "politely-media-"));
  const file = join(folder, "policy.json");
  writeFileSync(file, JSON.stringify(policy));
  const args = [command, "serve", "--port", "0", "--no-proxy", "--allow-writes", "--grace", "1s", "-p", file];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
  const end = () => {
    child.kill();
    rmSync(folder, { recursive: true, force: true });
  };
  let said = "";
  for await (const chunk of child.stderr) {
    said += chunk;
    const [, url] = /page at (http:[^\s,;]+)/.exec(said) ?? [];
    if (url !== undefined) return { url, end };
  }
  end();
  throw new Error(`politely serve did not begin:\n${said}`);
}
