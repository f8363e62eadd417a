import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { politely } from "../../../src/index.js";
import { exclusive } from "../../../src/lease.js";
import { COUNTERS, GAUGES, HISTOGRAMS, WHOLE } from "../../../src/observe/metrics.js";
import { prometheusMetrics } from "../../../src/prometheus.js";
import { memoryStore } from "../../../src/stores/memory.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { failure, many, track } from "../../verbs/support.js";
import { parseScrape } from "./scrape.js";

const root = fileURLToPath(new URL("../../../../../", import.meta.url));
const alertsFile = join(root, "deploy/prometheus/alerts.yml");
const alertTestsFile = join(root, "deploy/prometheus/alerts.test.yml");
const dashboardFile = join(root, "deploy/grafana/politely.json");
const page = readFileSync(join(root, "docs/metrics.md"), "utf8");

/** What promtool says, and with which code it ends. */
function promtool(args: readonly string[], input = ""): { code: number | null; said: string } {
  const { status, stdout, stderr, error } = spawnSync("promtool", args, { input, encoding: "utf8", timeout: 30_000 });
  if (error !== undefined) throw new Error("promtool is missing: node scripts/servers.mjs promtool", { cause: error });
  return { code: status, said: `${stdout}${stderr}` };
}

/** A scrape of a limiter to which everything has happened that is counted. */
async function realScrape(): Promise<string> {
  const clock = new VirtualClock();
  const limits = { rate: "1/2s", burst: 2, concurrency: 1, maxQueue: 2 } as const;
  const limiter = politely(
    { default: limits, groupBy: (url) => decodeURI(url.pathname.slice(1)) || url.host },
    { clock },
  );
  const metrics = prometheusMetrics(limiter, { labels: { limiter: "a \\ b" } });
  const store = memoryStore(() => clock.now() * 1_000);
  const lease = await metrics.countLease(exclusive(store, "run", { ttl: "30s", clock }));
  await metrics.countLease(exclusive(store, "run", { ttl: "30s", clock }));
  for (const target of ["a.org", 'https://b.org/quote"d', "https://b.org/日本"]) {
    void many(3, () => track(limiter.run(target, () => ({ status: 200 }))));
    await failure(limiter.acquire(target, { maxWait: 1 }));
    await clock.advance(20_000);
    (await limiter.acquire(target)).release("unused");
    (await limiter.acquire(target)).report({ status: 429 });
  }
  await clock.advance(700_000);
  const text = await metrics.text();
  if (lease.held) await lease.release();
  return text;
}

/** The names of metrics in a text, without what histograms add to theirs. */
function namesIn(text: string): Set<string> {
  return new Set([...text.matchAll(/\bpolitely_[a-z0-9_]+/g)].map(([name]) => name));
}

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
}

function expressions(): string[] {
  const { panels } = JSON.parse(readFileSync(dashboardFile, "utf8")) as Dashboard;
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}

describe("promtool", () => {
  it("finds nothing wrong with a real scrape", async () => {
    expect(promtool(["check", "metrics"], await realScrape())).toEqual({ code: 0, said: "" });
  });

  it("would find something wrong with a bad one", async () => {
    const text = (await realScrape()).replaceAll("politely_starts_total", "politely_starts");
    expect(promtool(["check", "metrics"], text).code).not.toBe(0);
  });

  it("takes the alert rules", () => {
    const { code, said } = promtool(["check", "rules", alertsFile]);
    expect(said).toContain("SUCCESS");
    expect(code).toBe(0);
  });

  it("sees every alarm go off when it should, and not otherwise", () => {
    const { code, said } = promtool(["test", "rules", alertTestsFile]);
    expect(said).toContain("SUCCESS");
    expect(code).toBe(0);
  });

  describe("reads", () => {
    let folder = "";
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), "politely-promtool-"));
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    it("every query of the dashboard", () => {
      const queries = expressions().map((expr) =>
        expr.replaceAll("$__rate_interval", "5m").replaceAll(/\$(job|host)\b/g, ".*"),
      );
      expect(queries.length).toBeGreaterThan(20);
      const rules = queries.map((expr, index) => ({ record: `query:${index}`, expr }));
      // JSON is YAML.
      const file = join(folder, "queries.yml");
      writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
      const { code, said } = promtool(["check", "rules", file]);
      expect(said).toContain("SUCCESS");
      expect(code).toBe(0);
    });
  });
});

describe("deploy", () => {
  it("asks only for metrics that a real scrape has", async () => {
    const samples = parseScrape(await realScrape());
    const known = new Set(samples.map(({ name }) => name));
    const asked = [...namesIn(expressions().join("\n")), ...namesIn(readFileSync(alertsFile, "utf8"))];
    expect(asked.length).toBeGreaterThan(20);
    const ofLibrary = asked.filter((name) => !name.startsWith("politely_service_"));
    expect(ofLibrary.filter((name) => !known.has(name))).toEqual([]);
  });

  it("asks only for bounds that a real scrape has", async () => {
    const samples = parseScrape(await realScrape());
    const bounds = (name: string): (string | undefined)[] =>
      samples.filter((sample) => sample.name === `${name}_bucket`).map(({ labels }) => labels.le);
    expect(bounds("politely_wait_seconds")).toContain("5");
    expect(bounds("politely_start_interval_seconds")).toContain("1.5");
    expect(bounds("politely_start_concurrency")).toContain("1");
  });
});

describe("the page of metrics", () => {
  it("has every metric of a real scrape, under the names of each system", async () => {
    const metrics = [COUNTERS, HISTOGRAMS, GAUGES, WHOLE].flatMap((group) => Object.values(group));
    const missing = metrics
      .flatMap(({ prometheus, opentelemetry }) => [prometheus, opentelemetry])
      .filter((name) => !page.includes(`\`${name}\``));
    expect(missing).toEqual([]);
    const told = new Set(parseScrape(await realScrape()).map(({ name }) => name.replace(/_(bucket|sum|count)$/, "")));
    expect([...told].sort()).toEqual(metrics.map(({ prometheus }) => prometheus).sort());
  });

  it("has every alarm", () => {
    const alarms = [...readFileSync(alertsFile, "utf8").matchAll(/alert: (\w+)/g)].map(([, name]) => name);
    expect(alarms).toHaveLength(9);
    expect(alarms.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
