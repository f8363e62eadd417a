import { describe, expect, it } from "vitest";
import { type Limits, politely } from "../../src/index.js";
import { type OriginBehaviour, type OriginLimit, VirtualClock, VirtualOrigin } from "../../src/testing/index.js";

const host = "shop.test";

/** Fetches `count` pages of a site at once through a limiter, as a user's program would, and lets it finish. */
async function crawl(
  limits: Limits,
  behaviour: OriginBehaviour,
  count: number,
): Promise<{ origin: VirtualOrigin; statuses: number[]; tookMs: number }> {
  const clock = new VirtualClock();
  const origin = new VirtualOrigin({ clock, ...behaviour });
  const polite = politely({ hosts: { [host]: limits } }, { clock });
  const statuses: number[] = [];
  const pages = Array.from({ length: count }, async (_, page) => {
    const url = `https://${host}/${page}`;
    const response = await polite.run(host, () => origin.fetch(url));
    statuses.push(response.status);
  });
  await clock.runToEnd();
  await Promise.all(pages);
  return { origin, statuses, tookMs: clock.now() };
}

describe("a program that uses politely, against a virtual site", () => {
  it("is never refused by a site with the limits it keeps to, and uses them fully", async () => {
    const site: OriginLimit[] = [
      { kind: "sliding-window", rate: "10/s" },
      { kind: "concurrency", count: 4 },
    ];
    const { origin, tookMs } = await crawl({ window: "10/s", concurrency: 4 }, { limits: site, latency: 120 }, 100);
    expect([origin.total, origin.refused]).toEqual([100, 0]);
    expect(origin.mostInAny(1_000)).toBe(10);
    expect(origin.peakInFlight).toBe(4);
    expect(tookMs).toBeLessThan(10_000);
  });

  it("is never refused by nginx at the rate and burst that nginx has", async () => {
    const site: OriginLimit[] = [{ kind: "leaky-bucket", rate: "5/s", burst: 3, nodelay: true }];
    const { origin } = await crawl({ rate: "5/s", burst: 4 }, { limits: site }, 60);
    expect([origin.total, origin.refused]).toEqual([60, 0]);
    expect(origin.shortestGapMs).toBe(0);
  });

  it("stays away for as long as a site says, and comes back alone", async () => {
    const site: OriginLimit[] = [{ kind: "penalty-box", rate: "5/s", banMs: 30_000 }];
    const { origin, statuses } = await crawl({ window: "20/s", concurrency: 1 }, { limits: site, latency: 10 }, 12);
    expect(origin.arrivalsDuringBan).toBe(0);
    expect(origin.arrivalsBeforeRetryAfter).toBe(0);
    expect(statuses.filter((status) => status === 429)).toHaveLength(2);
    const [fifth, sixth, seventh] = origin.requests.slice(4, 7).map(({ atMs }) => atMs);
    expect(sixth - fifth).toBeLessThan(1_000);
    expect(seventh - sixth).toBeGreaterThanOrEqual(30_000);
  });

  it("shows an impolite program for what it is", async () => {
    const clock = new VirtualClock();
    const limits: OriginLimit[] = [{ kind: "penalty-box", rate: "5/s", banMs: 30_000 }];
    const origin = new VirtualOrigin({ clock, limits });
    await Promise.all(Array.from({ length: 20 }, () => origin.fetch(`https://${host}/`)));
    expect([origin.mostInAny(1), origin.refused, origin.arrivalsDuringBan]).toEqual([20, 15, 14]);
  });

  it("gives the same run for the same seed", async () => {
    const behaviour: OriginBehaviour = {
      latency: { kind: "log-normal", medianMs: 200, sigma: 0.8 },
      travel: { kind: "uniform", minMs: 5, maxMs: 40 },
      answers: (_call, random) => (random() < 0.1 ? 503 : 200),
      limits: [{ kind: "token-bucket", rate: "8/s", burst: 4 }],
    };
    const run = async (): Promise<unknown> => {
      const { origin, tookMs } = await crawl({ window: "9/s", backoff: "none", cooldown: "1s" }, behaviour, 80);
      return [tookMs, origin.requests];
    };
    expect(await run()).toEqual(await run());
  });

  it("is seen by the site as paced from its answers when it asks for that, however requests travel", async () => {
    const travel = { kind: "uniform", minMs: 0, maxMs: 400 } as const;
    const fromStart = await crawl({ window: "5/s" }, { travel }, 60);
    const fromAnswer = await crawl({ window: "5/s", countFrom: "answer" }, { travel }, 60);
    expect(fromStart.origin.mostInAny(1_000)).toBeGreaterThan(5);
    expect(fromAnswer.origin.mostInAny(1_000)).toBeLessThanOrEqual(5);
  });
});
