import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { colourPaint, paintFor, plainPaint } from "../../src/paint.js";
import { asciiGlyphs, glyphsFor, sizeOf, unicodeGlyphs } from "../../src/view/look.js";
import { fakeIo } from "./fakeIo.js";

describe("paintFor", () => {
  it("paints in a terminal only, and never against NO_COLOR", () => {
    expect(paintFor(fakeIo({ env: {} }))).toBe(colourPaint);
    expect(paintFor(fakeIo({ env: { NO_COLOR: "" } }))).toBe(colourPaint);
    expect(paintFor(fakeIo({ env: { NO_COLOR: "1" } }))).toBe(plainPaint);
    expect(paintFor(fakeIo({ env: {}, isTerminal: false }))).toBe(plainPaint);
  });

  it("looks at stdout itself where that is painted", () => {
    const terminal = Object.assign(new PassThrough(), { isTTY: true });
    expect(paintFor(fakeIo({ env: {} }), "stdout")).toBe(plainPaint);
    expect(paintFor(fakeIo({ env: {}, stdout: terminal, isTerminal: false }), "stdout")).toBe(colourPaint);
    expect(paintFor(fakeIo({ env: { TERM: "dumb" }, stdout: terminal }), "stdout")).toBe(plainPaint);
  });

  it("puts no codes around nothing", () => {
    expect(colourPaint.red("")).toBe("");
    expect(colourPaint.red("x")).toBe("\u001b[31mx\u001b[39m");
  });
});

describe("glyphsFor", () => {
  it("believes the locale, the strongest variable first", () => {
    expect(glyphsFor({ LANG: "en_US.UTF-8" })).toBe(unicodeGlyphs);
    expect(glyphsFor({ LANG: "en_US.UTF-8", LC_ALL: "C" })).toBe(asciiGlyphs);
    expect(glyphsFor({ LANG: "C", LC_CTYPE: "C.utf8" })).toBe(unicodeGlyphs);
    expect(glyphsFor({})).toBe(asciiGlyphs);
  });
});

describe("sizeOf", () => {
  it("asks the stream each time, and falls back to 24 rows", () => {
    const io = fakeIo({ columns: 70 });
    expect(sizeOf(io)).toEqual({ columns: 70, rows: 24 });
    Object.assign(io.stderr, { columns: 50, rows: 10 });
    expect(sizeOf(io)).toEqual({ columns: 50, rows: 10 });
  });
});
