import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { UsageError } from "../../src/errors.js";
import { type ListedUrl, readUrls } from "../../src/list/urlList.js";
import { Place } from "./place.js";

async function read(place: Place, args: readonly string[], stdin: readonly string[] = []): Promise<ListedUrl[]> {
  const urls: ListedUrl[] = [];
  for await (const url of readUrls(args, { cwd: place.path, stdin: Readable.from(stdin) })) urls.push(url);
  return urls;
}

it("reads URLs from arguments, files and stdin, and says where each was written", async () => {
  using place = new Place();
  place.file("list.txt", "\uFEFF# pages\r\nhttps://a.org/1\r\n\r\n  b.org/x#part  \n");
  expect(await read(place, ["c.org", "list.txt", "-"], ["https://d.o", "rg/1\nhttps://d.org/2"])).toEqual([
    { url: "https://c.org/", source: "argument", line: 1 },
    { url: "https://a.org/1", source: "list.txt", line: 2 },
    { url: "https://b.org/x", source: "list.txt", line: 4 },
    { url: "https://d.org/1", source: "stdin", line: 1 },
    { url: "https://d.org/2", source: "stdin", line: 2 },
  ]);
});

it("names file and line of what is no URL of the web", async () => {
  using place = new Place();
  const cases = {
    "ftp://a.org/x": /^list:2: "ftp:\/\/a\.org\/x" is not a URL of http or https/,
    "file:/etc/hosts": /^list:2: "file:\/etc\/hosts" is not a URL of http or https/,
    "http:/a.org/x": /^list:2: "http:\/a\.org\/x" is not a URL of http or https/,
    "C:\\urls.txt": /^list:2: "C:\\\\urls\.txt" is not a URL of http or https/,
    "https://": /^list:2: "https:\/\/" is not a URL/,
    "two words": /^list:2: "two words" is not a URL/,
    // The title of a column, and a path of some site.
    url: /^list:2: "url" is not a URL/,
    "/wiki/Main_Page": /^list:2: "\/wiki\/Main_Page" is not a URL/,
    "https://me:secret@a.org/": /^list:2: a URL with a user name or password/,
    [`https://a.org/${"x".repeat(9_000)}`]: /^list:2: .* is 9014 characters long/,
    ["x".repeat(70_000)]: /^list could not be read after line 1: a line has more than 65536 characters|^list:2: /,
  };
  for (const [line, message] of Object.entries(cases)) {
    place.file("list", `https://a.org\n${line}`);
    const problem = await read(place, ["list"]).catch((error: unknown) => error);
    expect(problem).toBeInstanceOf(UsageError);
    expect((problem as Error).message).toMatch(message);
    expect((problem as Error).message).not.toContain("secret");
  }
});

it("takes a host without a scheme where it can be told for one, and any with a scheme", async () => {
  using place = new Place();
  const lines = [
    "a.org",
    "localhost/x",
    "LOCALHOST:8080",
    "intranet:80/x",
    "[::1]/x",
    "//cdn.a.org/x",
    "http://intranet/x",
  ];
  place.file("list", lines.join("\n"));
  expect((await read(place, ["list"])).map(({ url }) => url)).toEqual([
    "https://a.org/",
    "https://localhost/x",
    "https://localhost:8080/",
    "https://intranet:80/x",
    "https://[::1]/x",
    "https://cdn.a.org/x",
    "http://intranet/x",
  ]);
});

it("takes what looks like a path and is not there for a missing file", async () => {
  using place = new Place();
  mkdirSync(join(place.path, "folder"));
  for (const arg of ["urls.txt", "./urls", "/no/such/list", "urls", "~/list.csv"]) {
    await expect(read(place, [arg])).rejects.toThrow(`${arg}: no such file`);
  }
  await expect(read(place, ["folder"])).rejects.toThrow("folder is a folder");
});
