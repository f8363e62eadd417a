import type { Limits } from "../../../src/index.js";
import { randomNumbers } from "./randomNumbers.js";
import { failingSite, queueingSite, refusingSite, type Site, type SiteLatency, steadySite } from "./sites.js";

/** Starts per second that are expected from one second on up to another. */
export interface Band {
  readonly fromS: number;
  readonly toS: number;
  readonly least: number;
  readonly most: number;
}

/** A site, a policy that asks for more than it takes, and the pace that should come of it. */
export interface Scenario {
  readonly name: string;
  readonly limits: Limits;
  readonly site: () => Site;
  readonly bands: readonly Band[];
  /** How many answers may be bad in all. Default: not looked at. */
  readonly badMost?: number;
  /** What the answers of the last band's requests may take on average. Default: not looked at. */
  readonly latencyMostMs?: number;
}

const band = (fromS: number, toS: number, least: number, most: number): Band => ({ fromS, toS, least, most });

const latency = (seed: number, sigma = 0.3, latencyMs = 200): SiteLatency => ({
  latencyMs,
  sigma,
  random: randomNumbers(seed),
});

/** One value from a second on up to another, a second value before and after. */
const between =
  (fromS: number, toS: number, inside: number, outside: number) =>
  (atS: number): number =>
    atS >= fromS && atS < toS ? inside : outside;

/** Answers hold nothing, so that what is seen is the adapting alone. */
const noHold: Limits = { cooldown: 0, backoff: "none" };

/** What is expected, at 4 or 10 starts a second for minutes of virtual time. */
export const scenarios: readonly Scenario[] = [
  {
    name: "a site whose capacity drops to 30 % and that says 429 is used at nearly that, and in full minutes after it is back",
    limits: { rate: "4/s", cooldown: "2s" },
    site: () => refusingSite(between(60, 660, 1.2, 40), "rate_limited", latency(1)),
    bands: [
      band(0, 60, 3.95, 4),
      band(60, 180, 0.9, 1.2),
      band(180, 660, 1, 1.2),
      band(660, 780, 1.1, 4),
      band(960, 1200, 3.95, 4),
    ],
    badMost: 15,
  },
  {
    name: "the same with the default cooldown of a minute loses more than half of it, and no more answers",
    limits: { rate: "4/s" },
    site: () => refusingSite(between(60, 660, 1.2, 40), "rate_limited", latency(1)),
    bands: [band(0, 60, 3.95, 4), band(180, 660, 0.4, 1.2), band(960, 1200, 3.95, 4)],
    badMost: 12,
  },
  {
    name: "the same with 503 instead of 429 is found out from the share of failures",
    limits: { rate: "4/s" },
    site: () => refusingSite(between(60, 660, 1.2, 40), "server_error", latency(1)),
    bands: [band(0, 60, 3.95, 4), band(180, 660, 0.8, 1.2), band(960, 1200, 3.95, 4)],
    badMost: 45,
  },
  {
    name: "a site that answers 503 for a minute is left nearly alone for it, and asked in full again within two",
    limits: { rate: "4/s", ...noHold },
    site: () => failingSite(between(60, 120, 1, 0), "server_error", latency(2)),
    bands: [
      band(0, 60, 3.95, 4),
      band(60, 70, 0.3, 2),
      band(70, 120, 0.05, 0.2),
      band(120, 180, 0.05, 3),
      band(300, 420, 3.9, 4),
    ],
    badMost: 20,
  },
  {
    name: "a site that lets requests queue is asked at just below what it can serve, so that few wait there",
    limits: { rate: "10/s", concurrency: 50 },
    site: () => queueingSite(() => 5, 30_000, latency(3)),
    bands: [band(0, 60, 4, 6), band(60, 300, 4.3, 5), band(300, 900, 4.5, 4.95)],
    badMost: 0,
    latencyMostMs: 1000,
  },
  {
    name: "a site that gets slow for everybody is asked at an eighth, and in full once that has become usual",
    limits: { rate: "10/s" },
    site: () => steadySite(between(60, 3600, 1000, 200), latency(4)),
    bands: [band(0, 60, 9.9, 10), band(180, 360, 1.2, 2), band(1200, 1500, 9.9, 10)],
  },
  {
    name: "a site that only times out stays at the slowest pace for as long as it is tried",
    limits: { rate: "4/s", concurrency: 8, ...noHold },
    site: () => failingSite(between(60, 3600, 1, 0), "timeout", latency(5, 0.1, 5000)),
    bands: [band(0, 60, 1.2, 2), band(180, 1800, 0.06, 0.065)],
  },
  {
    name: "a site that fails every other time is not taken for stable",
    limits: { rate: "4/s", ...noHold },
    site: () => failingSite(() => 0.5, "timeout", latency(6)),
    bands: [band(300, 1800, 0.06, 0.1)],
  },
  {
    name: "latencies that vary tenfold without a reason slow nothing down",
    limits: { rate: "10/s" },
    site: () => steadySite(() => 200, latency(7, 1)),
    bands: [band(0, 900, 9.9, 10)],
  },
  {
    name: "one failure in a hundred slows nothing down",
    limits: { rate: "10/s", ...noHold },
    site: () => failingSite(() => 0.01, "server_error", latency(8)),
    bands: [band(0, 1200, 9.8, 10)],
  },
  {
    name: "one failure in fifty slows it down a little at most",
    limits: { rate: "10/s", ...noHold },
    site: () => failingSite(() => 0.02, "server_error", latency(13)),
    bands: [band(0, 1200, 8, 10)],
  },
  {
    name: "one failure in ten, whatever the pace, does not go below an eighth",
    limits: { rate: "10/s", ...noHold },
    site: () => failingSite(() => 0.1, "server_error", latency(9)),
    bands: [band(300, 900, 1.2, 6)],
  },
  {
    name: "fifty requests in flight that are all refused halve the pace once",
    limits: { rate: "10/s", ...noHold },
    site: () => failingSite(between(60, 65, 1, 0), "rate_limited", latency(10, 0.01, 5000)),
    bands: [band(0, 60, 9.9, 10), band(65, 70, 4.8, 5.2), band(500, 600, 9.9, 10)],
    badMost: 60,
  },
  {
    name: "the floor and the ceiling that are written hold",
    limits: { rate: "10/s", adaptive: { min: "1/2s", max: "4/s" }, ...noHold },
    site: () => failingSite(between(60, 360, 1, 0), "rate_limited", latency(11)),
    bands: [band(0, 60, 3.95, 4.02), band(120, 360, 0.49, 0.51), band(600, 720, 3.95, 4.02)],
  },
  {
    name: "a policy with concurrency alone is slowed down from the pace that was seen",
    limits: { concurrency: 4, ...noHold },
    site: () => refusingSite(between(60, 360, 5, 100), "rate_limited", latency(12)),
    bands: [band(0, 60, 17, 21), band(60, 360, 4, 5.2), band(700, 900, 17, 21)],
    badMost: 20,
  },
];
