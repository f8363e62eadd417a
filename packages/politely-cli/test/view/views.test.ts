import { describe, expect, it } from "vitest";
import { silentObserver } from "../../src/get/observer.js";
import { createGetView } from "../../src/view/getView.js";
import { LiveView } from "../../src/view/liveView.js";
import { PlainView } from "../../src/view/plainView.js";
import { FakeTicker, fakeIo } from "./fakeIo.js";
import { busyHosts, emptySummary, fakeProgress } from "./fakeRun.js";

const SUMMARY = "1 of 1 fetched, 1 request, 10 B, 1.5 s.\n";

describe("createGetView", () => {
  it("draws in a terminal, writes lines elsewhere, and shows nothing when it is to be quiet", () => {
    expect(createGetView(fakeIo())).toBeInstanceOf(LiveView);
    expect(createGetView(fakeIo({ isTerminal: false }))).toBeInstanceOf(PlainView);
    expect(createGetView(fakeIo(), { isQuiet: true })).toBe(silentObserver);
  });
});

describe("LiveView", () => {
  it("draws at most ten pictures a second, each in one write, however much happens", () => {
    const io = fakeIo({ rows: 30 });
    const ticker = new FakeTicker();
    const view = new LiveView(io, ticker);
    let starts = 0;
    view.begin({
      ...fakeProgress(busyHosts(3)),
      get starts() {
        return starts;
      },
    });
    for (let times = 0; times < 1_000; times++) {
      starts += 1;
      view.started("h0.example");
      view.log(`line ${times}`);
      ticker.advance(1);
    }
    expect(io.writes.length).toBeGreaterThan(5);
    expect(io.writes.length).toBeLessThanOrEqual(10);
  });

  it("writes nothing when nothing has changed", () => {
    const io = fakeIo({ rows: 30 });
    const ticker = new FakeTicker();
    const view = new LiveView(io, ticker);
    const hosts = busyHosts(2);
    view.begin(fakeProgress(hosts, { left: () => new Map(), total: 0, done: 0 }));
    ticker.advance(2_000);
    expect(io.writes).toHaveLength(1);
  });

  it.each([
    [30, 20, 22],
    [10, 5, 7],
    [5, 0, 2],
    [2, 0, 1],
  ])("in %i rows shows %i of 40 hosts, in %i lines", (rows, bars, lines) => {
    const io = fakeIo({ rows });
    const ticker = new FakeTicker();
    new LiveView(io, ticker).begin(fakeProgress(busyHosts(40)));
    ticker.advance(100);
    const picture = io.writes.join("");
    expect(picture.match(/h\d+\.example/g) ?? []).toHaveLength(bars);
    expect(picture.split("\n")).toHaveLength(lines + 1);
  });

  it("hides the cursor in the middle of a write only", () => {
    const io = fakeIo({ rows: 30 });
    const ticker = new FakeTicker();
    const view = new LiveView(io, ticker);
    view.begin(fakeProgress(busyHosts(3)));
    for (let times = 0; times < 20; times++) {
      view.log("something");
      ticker.advance(100);
    }
    view.end(emptySummary);
    for (const write of io.writes.slice(0, -2)) {
      expect(write.startsWith("\u001b[?25l")).toBe(true);
      expect(write.endsWith("\u001b[?25h")).toBe(true);
    }
  });

  it("ends with the summary in the place of the picture, and leaves nothing running", () => {
    const io = fakeIo({ rows: 30 });
    const ticker = new FakeTicker();
    const listeners = process.listenerCount("SIGCONT");
    const view = new LiveView(io, ticker);
    view.begin(fakeProgress(busyHosts(3)));
    ticker.advance(100);
    view.log("the last word");
    view.end(emptySummary);
    expect(io.writes.at(-2)).toBe("\u001b[4A\r\u001b[2Kthe last word\u001b[K\n\u001b[J");
    expect(io.writes.at(-1)).toBe(SUMMARY);
    expect(ticker.running).toBe(0);
    expect(process.listenerCount("SIGCONT")).toBe(listeners);
  });

  it("writes log lines at once while there is no picture yet", () => {
    const io = fakeIo();
    const view = new LiveView(io, new FakeTicker());
    view.log("reading\u001b[2J the list");
    expect(io.writes).toEqual(["reading [2J the list\n"]);
  });

  it("survives an end without a beginning", () => {
    const io = fakeIo();
    new LiveView(io, new FakeTicker()).end(emptySummary);
    expect(io.writes).toEqual([SUMMARY]);
  });
});

describe("PlainView", () => {
  it("writes a line every five seconds, and log lines as they come", () => {
    const io = fakeIo({ isTerminal: false });
    const ticker = new FakeTicker();
    const view = new PlainView(io, ticker);
    view.begin(fakeProgress(busyHosts(2), { failed: 1, bytes: 1_200_000 }));
    view.cooling("h1.example", 90_000);
    ticker.advance(4_999);
    view.log("h0.example\u001b[2J: robots.txt is missing");
    expect(io.writes).toEqual(["h0.example [2J: robots.txt is missing\n"]);
    ticker.advance(5_001);
    expect(io.writes).toHaveLength(3);
    expect(io.writes[1]).toMatch(
      /^20 of 200 done \(10%\), 1 failed, 2 in flight, 0\/s, 1\.2 MB, 1 host in cooldown, [\d a-z]+ left\n$/,
    );
  });

  it("writes the summary only when everything is over before", () => {
    const io = fakeIo({ isTerminal: false });
    const ticker = new FakeTicker();
    const view = new PlainView(io, ticker);
    view.begin(fakeProgress(busyHosts(2)));
    ticker.advance(4_000);
    view.end(emptySummary);
    ticker.advance(60_000);
    expect(io.writes).toEqual([SUMMARY]);
    expect(ticker.running).toBe(0);
  });

  it("says that the run is stopping instead of when it is over", () => {
    const io = fakeIo({ isTerminal: false });
    const ticker = new FakeTicker();
    new PlainView(io, ticker).begin(fakeProgress(busyHosts(2), { isStopping: true }));
    ticker.advance(5_000);
    expect(io.writes[0]).toMatch(/, stopping\n$/);
  });
});
