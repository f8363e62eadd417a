import { once } from "node:events";
import type { Readable } from "node:stream";
import { politely } from "politely";
import { VirtualClock } from "politely/testing";
import { describe, expect, it } from "vitest";
import { FeedReaders } from "../../../src/serve/feed/feedReaders.js";
import { HostFeed } from "../../../src/serve/feed/hostFeed.js";
import { FakeTicker } from "../../view/fakeIo.js";

const TICK_MS = 500;

function world(maxHosts: number) {
  const clock = new VirtualClock();
  const policy = { default: { rate: "1000/s", burst: 1_000 } } as const;
  const limiter = politely(policy, { clock });
  const feed = new HostFeed({ clock, limiter, policy: () => policy, maxHosts });
  const ticker = new FakeTicker();
  const readers = new FeedReaders(feed, { version: "", isWritable: false, startedAt: 0 }, ticker);
  let made = 0;
  /** So many hosts that nobody has heard of before are asked for, so many of the last ones again, and half a second goes by. */
  const tick = async (newHosts: number, again = 0): Promise<void> => {
    for (let count = 0; count < newHosts; count++) limiter.record(`host-${made++}.example`, "success");
    for (let back = 1; back <= again; back++) limiter.record(`host-${made - back}.example`, "success");
    await clock.advance(TICK_MS);
    ticker.advance(TICK_MS);
    // A look lets others have their turn every 300 hosts, twice.
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  };
  return { clock, feed, limiter, readers, ticker, tick };
}

/** Reads what is there, and what comes until nothing more does. */
function drained(stream: Readable): string {
  let text = "";
  for (let chunk = stream.read() as Buffer | null; chunk !== null; chunk = stream.read() as Buffer | null) {
    text += chunk.toString();
  }
  return text;
}

/** The names that a reader knows after these events. */
function known(text: string): Set<string> {
  const names = new Set<string>();
  for (const [, event, data] of text.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)) {
    const content = JSON.parse(data) as { rows?: { domain: string }[]; domains?: string[] };
    const rows = event === "rows" ? (content as { domain: string }[]) : (content.rows ?? []);
    for (const { domain } of rows) names.add(domain);
    for (const domain of content.domains ?? []) names.delete(domain);
  }
  return names;
}

it("lets others have their turn while many hosts are looked at", async () => {
  const { feed, limiter, readers } = world(10_000);
  for (let index = 0; index < 10_000; index++) limiter.record(`h${index}.example`, "success");
  let turns = 0;
  let immediate: NodeJS.Immediate;
  const turn = (): void => {
    turns++;
    immediate = setImmediate(turn);
  };
  immediate = setImmediate(turn);
  await readers.refresh();
  expect(turns).toBeGreaterThan(30);
  turns = 0;
  expect(await readers.first()).toHaveLength(2_000);
  clearImmediate(immediate);
  expect(turns).toBeGreaterThan(30);
  expect(feed.hostCount).toBe(10_000);
});

describe("a reader of the feed", () => {
  it("that reads knows exactly the hosts that are kept, however they come and go", async () => {
    const { feed, readers, tick } = world(50);
    await tick(50);
    await readers.refresh();
    const stream = readers.join(await readers.first());
    let text = drained(stream);
    for (let round = 0; round < 20; round++) {
      await tick(30);
      text += drained(stream);
    }
    await tick(0);
    text += drained(stream);
    expect([...known(text)].sort()).toEqual(Array.from(feed.records(), ({ domain }) => domain).sort());
    readers.close();
  });

  it("that stops reading for some seconds is told afterwards what is there now, and what has gone", async () => {
    const { feed, readers, tick } = world(2_000);
    await tick(2_000);
    await readers.refresh();
    const stream = readers.join(await readers.first());
    let text = drained(stream);
    for (let round = 0; round < 20; round++) await tick(1_000);
    for (let round = 0; round < 6; round++) {
      text += drained(stream);
      await tick(0);
    }
    expect(known(text + drained(stream)).size).toBe(feed.hostCount);
    readers.close();
  });

  it("is told the newest row of a host that changes while rows are being written", async () => {
    const { clock, limiter, readers, ticker, tick } = world(2_000);
    await tick(2_000);
    await readers.refresh();
    const stream = readers.join(await readers.first());
    for (let round = 0; round < 20; round++) {
      for (let index = 0; index < 2_000; index++) limiter.record(`host-${index}.example`, "success");
      await clock.advance(TICK_MS);
      ticker.advance(TICK_MS);
      // In each round a little later, somebody else looks at hosts, and one has changed once more.
      for (let turn = 0; turn < round; turn++) await new Promise(setImmediate);
      limiter.record("host-0.example", "success");
      await readers.refresh();
      for (let turn = 0; turn < 30; turn++) await new Promise(setImmediate);
      // No time goes by: nothing is looked at again because of that.
      ticker.advance(TICK_MS);
      for (let turn = 0; turn < 30; turn++) await new Promise(setImmediate);
      const [, total] = [...drained(stream).matchAll(/"domain":"host-0.example"[^}]*?"total":(\d+)/g)].at(-1) ?? [];
      expect([round, Number(total)]).toEqual([round, limiter.stats("host-0.example")?.totalRequests]);
    }
    readers.close();
  });

  it("that reads nothing holds a bounded heap of text, and is cut off after a minute", async () => {
    const { readers, ticker, tick } = world(2_000);
    await tick(2_000);
    await readers.refresh();
    const stream = readers.join(await readers.first());
    const closed = once(stream, "close");
    let most = 0;
    let ticks = 0;
    while (!stream.destroyed && ticks < 200) {
      await tick(50, 1_000);
      ticks++;
      most = Math.max(most, stream.readableLength + (stream as unknown as { writableLength: number }).writableLength);
    }
    expect(most).toBeLessThan(4 * 2 ** 20);
    expect([stream.destroyed, ticks > 100]).toEqual([true, true]);
    await closed;
    expect(ticker.running).toBe(0);
  });

  it("that cannot be told of all that has gone is cut off early, and begins anew", async () => {
    const { readers, tick } = world(2_000);
    await tick(2_000);
    await readers.refresh();
    const stream = readers.join(await readers.first());
    let ticks = 0;
    while (!stream.destroyed && ticks < 100) {
      await tick(5_000);
      ticks++;
    }
    expect([stream.destroyed, ticks < 60]).toEqual([true, true]);
    readers.close();
  });
});
