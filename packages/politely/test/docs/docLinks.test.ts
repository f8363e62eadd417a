import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";

type BrokenLinks = (root: string, document: string) => string[];

// By its address: the scripts of the workspace are no part of this program.
const script = new URL("../../../../scripts/docLinks.mjs", import.meta.url).href;
const { brokenLinks } = (await import(script)) as { readonly brokenLinks: BrokenLinks };

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Links of a.md that lead nowhere, among these files. */
function brokenIn(files: Readonly<Record<string, string>>): string[] {
  const folder = mkdtempSync(join(tmpdir(), "politely-links-"));
  folders.push(folder);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return brokenLinks(folder, "a.md");
}

describe("the check of links in the documentation", () => {
  it("names a link to a file that is not there", () => {
    expect(brokenIn({ "a.md": "[b](b.md) ![picture](c/d.svg)", "b.md": "" })).toEqual(["a.md: there is no c/d.svg"]);
  });

  it("names a heading that is not there, in another file and in its own", () => {
    const text = "# A\n[one](b.md#what-holds) [two](b.md#gone) [three](#a) [four](#b)";
    expect(brokenIn({ "a.md": text, "b.md": "## What holds" })).toEqual([
      "a.md: b.md has no heading #gone",
      "a.md: a.md has no heading #b",
    ]);
  });

  it("knows how GitHub names headings: code, punctuation, links, letters of all alphabets, the same one twice", () => {
    const headings = "# `politely get`\n## Who may, and for what?\n## [Leases](x.md)\n## Größe\n## Time\n## Time";
    const names = ["politely-get", "who-may-and-for-what", "leases", "größe", "time", "time-1"];
    const links = names.map((name) => `[x](b.md#${name})`).join(" ");
    expect(brokenIn({ "a.md": links, "b.md": headings })).toEqual([]);
    expect(brokenIn({ "a.md": "[x](b.md#time-2)", "b.md": headings })).toEqual(["a.md: b.md has no heading #time-2"]);
  });

  it("takes nothing in code for a link or a heading, and looks at no address with a scheme", () => {
    const text = "`[x](gone.md)`\n```md\n[y](gone.md)\n# Heading\n```\n[z](https://example.com/#x)\n[w](#heading)";
    expect(brokenIn({ "a.md": text })).toEqual(["a.md: a.md has no heading #heading"]);
  });

  it("sees a link whose text is code", () => {
    expect(brokenIn({ "a.md": "[`b`](b.md)" })).toEqual(["a.md: there is no b.md"]);
  });
});
