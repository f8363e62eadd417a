import fc from "fast-check";
import { expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { filePath } from "../../src/get/filePath.js";

it("names files after their URLs where that can be", () => {
  const paths = {
    "https://example.com/": "example.com/~index.html",
    "https://example.com/docs/": "example.com/docs/~index.html",
    "https://example.com/about": "example.com/about~page",
    "https://example.com/news/today.html": "example.com/news/today.html",
    "http://example.com:8080/a.html": "example.com~http~8080/a.html",
  };
  for (const [url, path] of Object.entries(paths)) expect(filePath(url)).toBe(path);
});

it("marks with a hash what would not do as a name", () => {
  expect(filePath("https://example.com/a.html?x=1")).toMatch(/^example\.com\/a~[\da-f]{16}\.html$/);
  expect(filePath("https://example.com/v1.2/a.html")).toMatch(/^example\.com\/v1\.2~d[\da-f]{12}\/a\.html$/);
  expect(filePath("https://example.com/NUL.txt")).toMatch(/^example\.com\/_nul~[\da-f]{16}\.txt$/);
  expect(filePath("https://example.com/%2e%2e/..%2f..%2fetc/passwd")).not.toContain("..");
});

/** Pieces that names get wrong: cases, dots, devices, what is no letter, and what looks like a mark of ours. */
const segment = fc.oneof(
  fc.constantFrom(
    "a",
    "A",
    "a.html",
    "A.html",
    "a~page",
    "~index.html",
    "",
    ".",
    "..",
    "%2e%2e",
    "con",
    "NUL.txt",
    "v1.2",
    "a.",
    ".a",
  ),
  fc.constantFrom(
    "é",
    "%20",
    "a b",
    "index.html",
    "a~0123456789abcdef.html",
    "x".repeat(90),
    "~long",
    "a%2Fb",
    "a\\b",
    "a:b",
  ),
  fc.string({ maxLength: 12 }),
);
const url = fc
  .record({
    scheme: fc.constantFrom("http", "https"),
    host: fc.constantFrom("example.com", "example.com:8080", "[::1]", "con", "127.0.0.1"),
    segments: fc.array(segment, { maxLength: 12 }),
    query: fc.constantFrom("", "?", "?a=1", "?A=1", "?a=../../x"),
  })
  .map(({ scheme, host, segments, query }) => {
    const text = `${scheme}://${host}/${segments.map((each) => each.replace(/[?#]/g, "")).join("/")}${query}`;
    return URL.canParse(text) ? new URL(text).href : "https://example.com/";
  });

it("never leaves the folder, and never gives two URLs one file or a file the name of a folder", () => {
  const safe = /^[a-z\d._~-]+$/;
  fc.assert(
    fc.property(fc.uniqueArray(url, { minLength: 2, maxLength: 30 }), (urls) => {
      const paths = urls.map((each) => filePath(each));
      expect(new Set(paths.map((path) => path.toLowerCase())).size).toBe(urls.length);
      const files = new Set(paths);
      for (const path of paths) {
        expect(path.length).toBeLessThanOrEqual(200);
        const names = path.split("/");
        for (const [index, name] of names.entries()) {
          expect(name).toMatch(safe);
          expect(name).not.toMatch(/^\.+$|\.$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/);
          const isFile = files.has(names.slice(0, index + 1).join("/"));
          expect(isFile).toBe(index === names.length - 1);
        }
      }
      expect(urls.map((each) => filePath(each))).toEqual(paths);
    }),
    seeded(300),
  );
});
