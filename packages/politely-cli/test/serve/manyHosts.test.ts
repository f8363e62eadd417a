import type { Limiter, Stats } from "politely";
import { expect, it } from "vitest";
import { metricsRoutes } from "../../src/serve/api/metricsRoutes.js";
import { feedRoutes } from "../../src/serve/feed/feedRoutes.js";
import { Started } from "./started.js";

/** Counts how many rows of statistics are read in one turn of the event loop. */
class Turns {
  most = 0;
  #inTurn = 0;

  /** The limiter, watched. */
  over(limiter: Limiter): Limiter {
    return new Proxy(limiter, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (name === "stats")
          return (host?: string) => (host === undefined ? this.#all(target) : this.#one(target, host));
        if (name === "eachStats") return () => this.#each(target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
  }

  #all(limiter: Limiter): Stats[] {
    const rows = limiter.stats();
    for (const _ of rows) this.#count();
    return rows;
  }

  #one(limiter: Limiter, host: string): Stats | undefined {
    this.#count();
    return limiter.stats(host);
  }

  *#each(limiter: Limiter): Iterable<Stats> {
    for (const row of limiter.eachStats()) {
      this.#count();
      yield row;
    }
  }

  #count(): void {
    if (this.#inTurn === 0) {
      setImmediate(() => {
        this.#inTurn = 0;
      });
    }
    this.#inTurn += 1;
    this.most = Math.max(this.most, this.#inTurn);
  }
}

const HOSTS = 3_000;

async function crowded(turns: Turns): Promise<Started> {
  const started = await Started.with({
    wrap: (limiter) => turns.over(limiter),
    addData: (app, parts) => {
      metricsRoutes(app, parts);
      feedRoutes(app, { limiter: parts.limiter, policy: () => parts.book.current(), isWritable: false });
    },
  });
  for (let index = 0; index < HOSTS; index++) started.limiter.record(`h${index}.org`, "success");
  return started;
}

it.each(["/v1/stats", "/v1/stats?limit=100000", "/metrics", "/v1/hosts"])(
  "lets others have their turn while it answers %s of 3,000 hosts",
  async (path) => {
    const turns = new Turns();
    await using started = await crowded(turns);
    expect((await started.get(path)).status).toBe(200);
    expect(turns.most).toBeLessThanOrEqual(500);
  },
);

it("tells the rows of all hosts, or as many as were asked for, and how many there are", async () => {
  await using started = await crowded(new Turns());
  const names = (body: Record<string, unknown>) => (body.stats as { domain: string }[]).map(({ domain }) => domain);
  const all = (await started.get("/v1/stats")).body;
  expect(names(all)).toEqual(Array.from({ length: HOSTS }, (_, index) => `h${index}.org`));
  expect(all.total).toBe(HOSTS);
  const some = (await started.get("/v1/stats?limit=7")).body;
  expect(names(some)).toEqual(names(all).slice(0, 7));
  expect(some.total).toBe(HOSTS);
  const none = await started.call("HEAD", "/v1/stats");
  expect([none.status, none.text]).toEqual([200, ""]);
});

it("goes on serving when a caller leaves in the middle of the statistics", async () => {
  await using started = await crowded(new Turns());
  const socket = await started.connect();
  socket.write("GET /v1/stats HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await new Promise((resolve) => socket.once("data", resolve));
  socket.destroy();
  expect((await started.get("/v1/stats?limit=1")).body.total).toBe(HOSTS);
  expect(started.lines).toEqual([]);
});
