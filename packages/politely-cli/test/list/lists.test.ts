import { PassThrough, Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { UsageError, WorkError } from "../../src/errors.js";
import { readLines } from "../../src/list/lines.js";
import { readUrls } from "../../src/list/urlList.js";
import { folderWith } from "../policy/captured.js";

const never = new AbortController().signal;

async function urlsOf(stdin: Readable, interrupted = never): Promise<string[]> {
  const found: string[] = [];
  for await (const { url } of readUrls(["-"], { cwd: "/", stdin, interrupted })) found.push(url);
  return found;
}

/** These bytes, given in hexadecimal, and one that is no UTF-8. */
function brokenText(begin: string): Buffer {
  return Buffer.concat([Buffer.from(begin, "hex"), Buffer.of(0xff, 10)]);
}

async function linesOf(pieces: readonly (string | Uint8Array)[]): Promise<string[]> {
  const found: string[] = [];
  for await (const lines of readLines(Readable.from(pieces))) found.push(...lines);
  return found;
}

describe("hosts in a list", () => {
  it.each([
    ["https://a!b.org/", /^stdin:2: the host of "https:\/\/a!b\.org\/" must be made of letters, digits/],
    [`https://${"x".repeat(64)}.org/`, /^stdin:2: the host of .* must have at most 63 characters between two dots/],
    ["https://a..org/", /^stdin:2: the host of .* must not have an empty part/],
    ['"http://a.org/"', /^stdin:2: "\\"http:\/\/a\.org\/\\"" is in quotes; leave them out\.$/],
    ["'a.org'", /^stdin:2: "'a\.org'" is in quotes/],
  ])("refuses %s with its line, as the limiter would later", async (line, message) => {
    const problem = await urlsOf(Readable.from([`https://a.org/\n${line}\n`])).catch((error: unknown) => error);
    expect(problem).toBeInstanceOf(UsageError);
    expect((problem as Error).message).toMatch(message);
  });

  it("takes every host that the limiter takes", async () => {
    const urls = ["https://a-b.x_y.org/", "http://127.0.0.1:8080/", "http://[::1]/", "https://xn--bcher-kva.de/"];
    expect(await urlsOf(Readable.from([urls.join("\n")]))).toEqual(urls);
    expect(await urlsOf(Readable.from(["https://Bücher.de./x"]))).toEqual(["https://xn--bcher-kva.de./x"]);
  });
});

describe("the text of a list", () => {
  it("names the line that is not UTF-8, and says how to convert the file", async () => {
    const latin1 = Buffer.from("https://a.org/1\nhttps://a.org/2\nhttps://a.org/caf\u00e9\n", "latin1");
    for (const pieces of [
      [latin1],
      [latin1.subarray(0, 20), latin1.subarray(20)],
      [...latin1].map((b) => Buffer.of(b)),
    ]) {
      const problem = await urlsOf(Readable.from(pieces)).catch((error: unknown) => error);
      expect(problem).toBeInstanceOf(UsageError);
      expect((problem as Error).message).toBe(
        "stdin:3: is not text in UTF-8. Convert the list first: iconv -f LATIN1 -t UTF-8.",
      );
    }
  });

  it("says of a list that is compressed or UTF-16 what helps there", async () => {
    for (const [bytes, advice] of [
      [gzipSync("https://a.org/1\n"), "is compressed. Unpack the list first: zcat."],
      [brokenText("28b52ffd"), "is compressed. Unpack the list first: zstdcat."],
      [brokenText("fd377a585a00"), "is compressed. Unpack the list first: xzcat."],
      [brokenText("425a6839314159265359"), "is compressed. Unpack the list first: bzcat."],
      [brokenText("504b0304"), "is compressed. Unpack the list first: unzip -p."],
      [
        Buffer.from("\uFEFFhttps://a.org/1\n", "utf16le"),
        "is not text in UTF-8. Convert the list first: iconv -f UTF-16 -t UTF-8.",
      ],
    ] as const) {
      await expect(urlsOf(Readable.from([bytes]))).rejects.toThrow(`stdin:1: ${advice}`);
    }
  });

  it("names a torn last character too", async () => {
    const torn = Buffer.from("https://a.org/é").subarray(0, -1);
    await expect(urlsOf(Readable.from([torn]))).rejects.toThrow(/^stdin:1: is not text in UTF-8/);
  });

  it("cuts lines wherever the pieces end, inside a character too", async () => {
    const bytes = Buffer.from("\uFEFFä\r\n€uro\n\n\u{1F600}x");
    for (let at = 0; at <= bytes.length; at++) {
      expect(await linesOf([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(["ä\r", "€uro", "", "\u{1F600}x"]);
    }
  });

  it("names the line that is too long", async () => {
    const problem = await urlsOf(Readable.from(["a.org\n", "x".repeat(70_000)])).catch((error: unknown) => error);
    expect((problem as Error).message).toMatch(/^stdin:2: has more than 65,536 bytes; a list has one URL a line\.$/);
  });
});

describe("Ctrl-C while a list is read", () => {
  it("ends the reading of stdin that has no end", async () => {
    const stdin = new PassThrough();
    const interrupt = new AbortController();
    const reading = urlsOf(stdin, interrupt.signal).catch((error: unknown) => error);
    stdin.write("https://a.org/1\n");
    setImmediate(() => interrupt.abort());
    const problem = await reading;
    expect(problem).toBeInstanceOf(WorkError);
    expect((problem as Error).message).toBe("interrupted while stdin was read, after line 1; nothing was begun.");
    expect(stdin.destroyed).toBe(true);
  });

  it("ends the reading of a file", async () => {
    const cwd = await folderWith({ "list.txt": "https://a.org/1\n".repeat(50_000) });
    const interrupt = new AbortController();
    const read = async (): Promise<void> => {
      let count = 0;
      for await (const _ of readUrls(["list.txt"], { cwd, stdin: Readable.from([]), interrupted: interrupt.signal })) {
        count += 1;
        if (count === 10) interrupt.abort();
      }
    };
    await expect(read()).rejects.toThrow(/^interrupted while list\.txt was read/);
  });
});
