/**
 * One policy that uses every field there is. The reference takes the example of each field from it, and `loadPolicy` must take it whole.
 *
 * @satisfies {import("../dist/index.js").PolicyInput & { readonly $schema: string }}
 */
export const policyExample = /** @type {const} */ ({
  $schema: "./node_modules/politely/schema/policy.schema.json",
  default: { rate: "1/s" },
  hosts: {
    "api.example.com": {
      enabled: true,
      minDelay: "250ms",
      rate: "2/s",
      burst: 10,
      window: ["60/min", "1000/h"],
      quota: { count: 10_000, per: "day", timeZone: "Europe/Berlin" },
      concurrency: 4,
      countFrom: "answer",
      backoff: { kind: "exponential", base: "2s", max: "2min", jitter: 0.2 },
      cooldown: ["10s", "20s", "40s"],
      adaptive: { min: "1/min", max: "1/s" },
      maxWait: "30s",
      maxQueue: 1_000,
      permitTtl: "1min",
      maxHold: "5min",
      maxRetryAfter: "2h",
      intents: { search: { minDelay: "3s" } },
    },
  },
  global: { concurrency: 50 },
  scopes: { "proxy:*": { rate: "5/s" } },
  groupBy: "domain",
  localhost: "limited",
  presets: ["arxiv", "crates-io"],
  http: {
    userAgent: "NewsArchive/2.1",
    contact: "archive@example.org",
    robots: { userAgent: "NewsArchive", maxAge: "1h" },
    retry: {
      attempts: 4,
      methods: ["GET", "HEAD"],
      maxWait: "5min",
      delay: "2s",
      jitter: 0.5,
      budget: { share: 0.1, perMinute: 5 },
    },
    maxCrawlDelay: "30s",
    refusal: "response",
  },
});
