import type { PolicyPreset } from "./preset.js";

/** A whole policy for collectors of financial news and energy data, with a careful default. */
export const collector: PolicyPreset = {
  id: "collector",
  policy: {
    default: { minDelay: 1_000, window: "5/min", backoff: "linear" },
    hosts: {
      "finance.yahoo.com": { minDelay: 2_000, window: "3/min", backoff: "exponential" },
      "reuters.com": { minDelay: 3_000, window: "2/min", backoff: "exponential" },
      "*.company-ir": { minDelay: 1_000, window: "5/min", backoff: "linear" },
      "eia.gov": { minDelay: 1_000, window: "10/min", backoff: "none" },
    },
  },
  notes: "A gap and a count per minute for each host. Chosen with care rather than published by the sites.",
  date: "2026-11-15",
};
