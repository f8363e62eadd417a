import type { Limiter, PolicyInput } from "politely";
import { Dice } from "../feed/dice.js";

/** Limits of a program that reads news and calls a few interfaces. */
export const newsPolicy: PolicyInput = {
  default: { rate: "1/s", concurrency: 4 },
  hosts: {
    "api.github.com": { window: "60/min", concurrency: 8 },
    "export.arxiv.org": { minDelay: "3s", concurrency: 1 },
    "en.wikipedia.org": { rate: "8/s", burst: 4, concurrency: 4 },
    "news.ycombinator.com": { rate: "30/min" },
    "cdn.images.example": { rate: "20/s", burst: 20 },
  },
};

const names = [
  "api.github.com",
  "export.arxiv.org",
  "en.wikipedia.org",
  "news.ycombinator.com",
  "cdn.images.example",
  "www.bbc.co.uk",
  "feeds.reuters.example",
  "old.reddit.com",
  "api.openalex.org",
  "data.gov.example",
  "shop.example",
  "tickets.opera.example",
  "weather.example",
  "maps.example",
  "lists.debian.org",
  "registry.npmjs.org",
  "crates.io",
  "pypi.org",
  "a-very-long-name-of-a-department.archive.ministry-of-public-works.example",
  "blog.example",
];

/** Keeps hosts busy as a real program does: a few wait, one is told to stay away, one is paused. Ends with `stop`. */
export class Traffic {
  readonly #dice = new Dice();
  readonly #abort = new AbortController();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(readonly limiter: Limiter) {}

  news(): void {
    for (const name of names.slice(0, 14)) this.#keepAsking(name, 6);
    for (const name of names.slice(14)) void this.#ask(name, "success");
    void this.#ask("old.reddit.com", { status: 429, headers: { "retry-after": "90" } });
    void this.#ask("shop.example", "rate_limited");
    this.limiter.pause("tickets.opera.example");
    this.limiter.pause("weather.example", 600_000);
  }

  /** `perSecond` events a second, spread over `count` hosts. */
  crowd(count: number, perSecond: number): void {
    for (let index = 0; index < count; index++) this.limiter.record(`host-${index}.example`, "success");
    const everyMs = 50;
    this.#every(everyMs, () => {
      for (let each = 0; each < (perSecond * everyMs) / 1_000; each++) {
        const name = `host-${this.#dice.below(count)}.example`;
        const kind = this.#dice.below(400) === 0 ? ("rate_limited" as const) : ("success" as const);
        if (this.#dice.below(3) === 0) void this.#ask(name, kind);
        else this.limiter.record(name, kind);
      }
    });
  }

  stop(): void {
    this.#abort.abort();
    for (const timer of this.#timers) clearInterval(timer);
  }

  #keepAsking(name: string, waiting: number): void {
    for (let each = 0; each < waiting; each++) void this.#again(name);
  }

  async #again(name: string): Promise<void> {
    while (await this.#ask(name, "success"));
  }

  /** Resolves to whether it was granted. */
  async #ask(name: string, outcome: Parameters<Limiter["record"]>[1]): Promise<boolean> {
    try {
      const permit = await this.limiter.acquire(name, { signal: this.#abort.signal });
      await new Promise((resolve) => setTimeout(resolve, 20 + this.#dice.below(200)));
      permit.release(outcome);
      return true;
    } catch {
      // The end of the traffic, or of the limiter.
      return false;
    }
  }

  #every(ms: number, work: () => void): void {
    this.#timers.add(setInterval(work, ms));
  }
}
