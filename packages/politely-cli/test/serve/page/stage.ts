import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { type PolicyInput, politely } from "politely";
import { build } from "vite";
import { feedRoutes } from "../../../src/serve/feed/feedRoutes.js";
import { pageRoutes } from "../../../src/serve/feed/pageRoutes.js";
import { Started, type StartOptions } from "../started.js";

const config = fileURLToPath(new URL("../../../page/vite.config.ts", import.meta.url));

/** The page, built from its source into a folder of its own, and a browser to look at it. */
export class Stage implements AsyncDisposable {
  private constructor(
    readonly folder: string,
    readonly browser: Browser,
  ) {}

  static async open(): Promise<Stage> {
    const folder = mkdtempSync(join(tmpdir(), "politely-page-"));
    await build({ configFile: config, logLevel: "warn", build: { outDir: folder, emptyOutDir: true } });
    const browser = await chromium.launch({
      executablePath: programOnPath("chromium"),
      // Root has no sandbox, and small machines have little shared memory.
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
    });
    return new Stage(folder, browser);
  }

  /** A service with the feed and the page, over a limiter in memory. */
  serve(policy: PolicyInput, options: Omit<StartOptions, "policy" | "limiter"> = {}): Promise<Started> {
    return Started.with({
      isWritable: true,
      ...options,
      policy,
      limiter: politely(policy),
      addData: (app, { limiter, book, isWritable }) =>
        feedRoutes(app, { limiter, policy: () => book.current(), isWritable, version: "0.1.0" }),
      addPage: (app) => pageRoutes(app, { folder: pathToFileURL(`${this.folder}/`) }),
    });
  }

  /** Opens the page of a service. What goes wrong in it, a breach of its content policy included, is noted in `problems`. */
  async look(url: string, options: BrowserContextOptions = {}): Promise<Look> {
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    const page = await context.newPage();
    const problems: string[] = [];
    const foreign: string[] = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => {
      // A refused request is an answer here, not a mistake.
      if (message.type() === "error" && !/Failed to load resource/.test(message.text())) problems.push(message.text());
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(url) && !request.url().startsWith("data:")) foreign.push(request.url());
    });
    await page.goto(`${url}/`);
    return { page, problems, foreign, [Symbol.asyncDispose]: () => context.close() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A page that is looked at, until it is disposed of. */
export interface Look extends AsyncDisposable {
  readonly page: Page;
  /** Errors of the page. */
  readonly problems: readonly string[];
  /** Requests to anybody but the service. */
  readonly foreign: readonly string[];
}

function programOnPath(name: string): string {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // The next folder may have it.
    }
  }
  throw new Error(`${name} is not on PATH. Install it: node scripts/servers.mjs ${name}`);
}
