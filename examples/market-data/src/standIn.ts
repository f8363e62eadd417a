import { VirtualOrigin } from "politely/testing";

/** Times of the demonstration are real ones divided by this: a minute is 3 s. */
export const SCALE = 20;

/** The sites of the demonstration, with the limits of the table and some bad luck. Each refuses who comes too often. */
export function standInSites(): VirtualOrigin {
  return new VirtualOrigin({
    latency: 20,
    hosts: {
      "finance.yahoo.com": {
        latency: 20,
        limits: [{ kind: "sliding-window", rate: "3/3s" }],
        answers: [503, 503],
      },
      "reuters.com": { latency: 20, limits: [{ kind: "sliding-window", rate: "2/3s" }], answers: [429] },
      "acme.company-ir": { latency: 20, limits: [{ kind: "sliding-window", rate: "5/3s" }], answers: ["timeout"] },
      "eia.gov": {
        latency: 20,
        limits: [{ kind: "sliding-window", rate: "10/3s" }],
        answers: [{ status: 429, headers: { "retry-after": "1" } }, 500],
      },
    },
  });
}
