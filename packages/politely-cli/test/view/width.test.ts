import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { colourPaint } from "../../src/paint.js";
import { fitText, padText, safeText, textWidth } from "../../src/view/width.js";

const anyText = fc.string({ unit: "binary", maxLength: 40 });

describe("textWidth", () => {
  it.each([
    ["", 0],
    ["example.com", 11],
    ["café", 4],
    ["cafe\u0301", 4],
    ["例え.jp", 7],
    ["한국", 4],
    ["ｆｕｌｌ", 8],
    ["🚀", 2],
    ["█░…", 3],
    ["a\u200bb", 2],
    ["☃", 1],
    ["☃\ufe0f", 2],
  ])("counts %j as %i columns", (text, width) => {
    expect(textWidth(text)).toBe(width);
  });

  it("counts colours as nothing", () => {
    expect(textWidth(`${colourPaint.red("例")}${colourPaint.bold("x")}`)).toBe(3);
  });
});

describe("fitText", () => {
  it("leaves what fits as it is, and cuts the rest with an ellipsis", () => {
    expect(fitText("example.com", 11)).toBe("example.com");
    expect(fitText("example.com", 10)).toBe("example.c…");
    expect(fitText("example.com", 10, "...")).toBe("example...");
  });

  it("never cuts a wide character in two", () => {
    expect(fitText("例え例え", 6)).toBe("例え…");
    expect(fitText("例え例え", 5)).toBe("例え…");
    expect(fitText("例え例え", 4)).toBe("例…");
  });

  it("never returns more columns than there are, whatever the text", () => {
    fc.assert(
      fc.property(anyText, fc.nat(30), (text, width) => {
        expect(textWidth(fitText(text, width))).toBeLessThanOrEqual(width);
      }),
      seeded(500),
    );
  });

  it("returns nothing where not even the ellipsis fits", () => {
    expect(fitText("abc", 0)).toBe("");
    expect(fitText("abcdef", 2, "...")).toBe("");
  });
});

describe("padText", () => {
  it("fills up to the width by columns, on either side", () => {
    expect(padText("例", 4)).toBe("例  ");
    expect(padText("12", 4, "right")).toBe("  12");
    expect(padText("12345", 4)).toBe("12345");
  });
});

describe("safeText", () => {
  it("takes away what could draw on the terminal", () => {
    expect(safeText("a\u001b[2Jb\nc\td\u0007\u009b31me\u202ef")).toBe("a [2Jb c d  31me f");
  });

  it("leaves no control character in any text, and keeps its length", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const safe = safeText(text);
        expect(safe).not.toMatch(/\p{Cc}/u);
        expect(safe.length).toBe(text.length);
      }),
      seeded(500),
    );
  });
});
