import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { colourPaint } from "../../src/paint.js";
import { type LiveHost, type LiveSnapshot, liveLines } from "../../src/view/liveLines.js";
import { asciiGlyphs } from "../../src/view/look.js";
import { textWidth } from "../../src/view/width.js";
import { plainLook } from "./looks.js";

const hosts: readonly LiveHost[] = [
  {
    key: "api.example.org",
    total: 4_000,
    done: 120,
    failed: 0,
    inFlight: 0,
    startsPerSec: 0,
    limit: "2/s",
    wait: { nextStartMs: 28_000, cooldownMs: 28_000, because: "429, Retry-After 30 s" },
  },
  {
    key: "例え.jp",
    total: 300,
    done: 150,
    failed: 30,
    inFlight: 1,
    startsPerSec: 1.98,
    limit: "2/s",
    wait: { nextStartMs: 350, cooldownMs: 0, reason: "例え.jp: rate 2/s, 411 ms to go" },
  },
  { key: "fast.example.com", total: 50, done: 49, failed: 0, inFlight: 1, startsPerSec: 12, limit: "no limit" },
  { key: "done.example.com", total: 5, done: 5, failed: 0, inFlight: 0, startsPerSec: 1, limit: "1/s" },
];

const snapshot: LiveSnapshot = {
  total: 4_355,
  done: 324,
  failed: 30,
  inFlight: 2,
  bytes: 1_234_567,
  startsPerSec: 13.98,
  leftMs: 2_000_000,
  isStopping: false,
  hosts,
  moreHosts: 180,
};

describe("liveLines", () => {
  it("shows a bar for each host, those not shown, and the total", () => {
    expect(liveLines(snapshot, plainLook(110))).toEqual([
      "api.example.org   ░░░░░░░░░░░░░░░░░░░░░░░░░░░  120/4,000       0/s  cooldown 28 s: 429, Retry-After 30 s",
      "例え.jp           ██████████▒▒▒░░░░░░░░░░░░░░    150/300    1.98/s  next in 350 ms: rate 2/s",
      "fast.example.com  ██████████████████████████░      49/50      12/s  no limit",
      "done.example.com  ███████████████████████████        5/5       1/s  done",
      "… and 180 more hosts",
      "total             █▒░░░░░░░░░░░░░░░░░░░░░░░░░  324/4,355      14/s  33 min 20 s left, 7%, 30 failed, 2 in fli…",
    ]);
  });

  it("leaves the bar out first, then the note, then the rate, then the name", () => {
    expect(liveLines(snapshot, plainLook(55)).slice(0, 2)).toEqual([
      "api.example.org   120/4,000       0/s  cooldown 28 s: …",
      "例え.jp             150/300    1.98/s  next in 350 ms:…",
    ]);
    expect(liveLines(snapshot, plainLook(36))[0]).toBe("api.example…  120/4,000       0/s");
    expect(liveLines(snapshot, plainLook(18))[0]).toBe("api.e…  120/4,000");
    expect(liveLines(snapshot, plainLook(11))[0]).toBe("120/4,000");
  });

  it("says that it is stopping, and for how many it still waits", () => {
    expect(liveLines({ ...snapshot, isStopping: true }, plainLook(110)).at(-1)).toContain(
      "stopping: 2 still in flight",
    );
  });

  it("uses ASCII where the terminal shows nothing else", () => {
    const text = liveLines(snapshot, { ...plainLook(110), glyphs: asciiGlyphs })
      .join("\n")
      .replace("例え.jp", "");
    expect(text).toMatch(/^[ -~\n]*$/);
    expect(text).toContain("##########xxx..............");
  });

  it("keeps the columns aligned with colours, too", () => {
    const painted = liveLines(snapshot, { ...plainLook(110), paint: colourPaint });
    const codes = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, "g");
    expect(painted.map((line) => line.replace(codes, ""))).toEqual(liveLines(snapshot, plainLook(110)));
    expect(painted.join("")).toContain("\u001b[33mcooldown 28 s");
  });

  it("lets no site draw on the terminal", () => {
    const wait = { nextStartMs: 9, cooldownMs: 9, because: "429\u001b[2J\r\n\u0007" };
    const rude = { ...snapshot, hosts: [{ ...hosts[0], key: "a\u001b[31m", wait }] };
    expect(liveLines(rude, plainLook(110)).join("")).not.toMatch(/\p{Cc}/u);
  });

  it("is never wider than the terminal, and never longer than its hosts and two lines", () => {
    const count = fc.nat(10_000_000);
    const host = fc.record({
      key: fc.string({ unit: "binary", maxLength: 60 }),
      total: count,
      done: count,
      failed: count,
      inFlight: fc.nat(100),
      startsPerSec: fc.double({ min: 0, max: 1e6, noNaN: true }),
      limit: fc.constant(""),
      wait: fc.option(
        fc.record({
          nextStartMs: fc.oneof(fc.nat(), fc.constant(Number.POSITIVE_INFINITY)),
          cooldownMs: fc.nat(),
          because: fc.string({ unit: "binary" }),
        }),
        { nil: undefined },
      ),
    });
    const any = fc.record({
      total: count,
      done: count,
      failed: count,
      inFlight: fc.nat(100),
      bytes: fc.nat(),
      startsPerSec: fc.double({ min: 0, max: 1e6, noNaN: true }),
      leftMs: fc.option(fc.nat(), { nil: undefined }),
      isStopping: fc.boolean(),
      hosts: fc.array(host, { maxLength: 6 }),
      moreHosts: fc.nat(10),
    });
    fc.assert(
      fc.property(any, fc.integer({ min: 1, max: 160 }), fc.boolean(), (picture, columns, isColoured) => {
        const look = { ...plainLook(columns), ...(isColoured ? { paint: colourPaint } : {}) };
        const lines = liveLines(picture, look);
        for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(columns);
        expect(lines.length).toBe(picture.hosts.length + (picture.moreHosts > 0 ? 2 : 1));
      }),
      seeded(300),
    );
  });
});
