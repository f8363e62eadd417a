import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { expect, it } from "vitest";
import { startOrigin } from "./origin.js";
import { curl, isSettled, raw, rawConnection, startProxy } from "./place.js";

const names = (rawHeaders: readonly string[]): string[] =>
  rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());

it("removes the headers of a connection, and those it names, on the way there", async () => {
  await using site = await startOrigin();
  await using place = await startProxy();
  await raw(
    place.port,
    [
      `GET ${site.url}/ HTTP/1.1`,
      "Host: elsewhere.example",
      "Connection: close, X-Secret,  x-other",
      "X-Secret: 1",
      "X-Other: 2",
      "Keep-Alive: timeout=5",
      "Proxy-Connection: keep-alive",
      "Proxy-Authorization: Basic eDp5",
      "TE: trailers",
      "Politely-Anything: 3",
      "X-Kept: a",
      "x-kept: b",
      "\r\n",
    ].join("\r\n"),
  );
  const [{ rawHeaders, headers }] = site.seen;
  expect(names(rawHeaders).toSorted()).toEqual(["connection", "host", "via", "x-kept", "x-kept"]);
  expect(headers.host).toBe(`127.0.0.1:${site.port}`);
  expect(headers["x-kept"]).toBe("a, b");
});

it("removes them on the way back as well, and says how long the request waited", async () => {
  await using site = await startOrigin((_, response) => {
    const lines = [
      ["Connection", "X-Hidden"],
      ["X-Hidden", "1"],
      ["Proxy-Authenticate", "Basic"],
      ["Politely-Waited-Ms", "999999"],
      ["Set-Cookie", "a=1"],
      ["Set-Cookie", "b=2"],
      ["Content-Length", "4"],
    ];
    response.writeHead(200, lines.flat());
    response.end("body");
  });
  await using place = await startProxy();
  const answer = await raw(place.port, `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(answer).not.toMatch(/hidden|proxy-authenticate|999999/i);
  expect(answer).toMatch(/Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n/);
  expect(answer.match(/^Politely-Waited-Ms: \d+$/gim)).toHaveLength(1);
  expect(answer.match(/^Content-Length: 4$/gim)).toHaveLength(1);
});

// Each would be two requests to one reader, or another one, to the next.
const attempts: readonly (readonly [what: string, head: readonly string[], rest?: string])[] = [
  ["length and chunks", ["Content-Length: 6", "Transfer-Encoding: chunked"], "0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"],
  ["chunks and length", ["Transfer-Encoding: chunked", "Content-Length: 6"], "0\r\n\r\nX"],
  ["two lengths", ["Content-Length: 0", "Content-Length: 30"], "GET /smuggled HTTP/1.1\r\n\r\n"],
  ["two lengths in one", ["Content-Length: 0, 30"], "GET /smuggled HTTP/1.1\r\n\r\n"],
  ["a length with a sign", ["Content-Length: +5"], "hello"],
  ["a hexadecimal length", ["Content-Length: 0x5"], "hello"],
  ["a space before the colon", ["Content-Length : 5"], "hello"],
  ["a space before the colon of the encoding", ["Transfer-Encoding : chunked"], "0\r\n\r\n"],
  ["an unknown encoding", ["Transfer-Encoding: xchunked"], "0\r\n\r\n"],
  ["an encoding beside chunked", ["Transfer-Encoding: gzip, chunked"], "0\r\n\r\n"],
  ["chunked twice", ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], "0\r\n\r\n"],
  ["chunked with a tail", ["Transfer-Encoding: chunked, identity"], "0\r\n\r\n"],
  ["a bare line feed between headers", ["X-A: 1\nTransfer-Encoding: chunked", "Content-Length: 5"], "0\r\n\r\n"],
  ["a bare carriage return in a value", ["X-A: 1\rX-B: 2"]],
  ["a null byte in a value", ["X-A: 1\0"]],
  ["a second host", ["Host: other.example"]],
  ["a name with a space", ["X A: 1"]],
  ["no name", [": 1"]],
  ["chunks with a length that is none", ["Transfer-Encoding: chunked"], "zz\r\nhello\r\n0\r\n\r\n"],
  ["chunks longer than they say", ["Transfer-Encoding: chunked"], "2\r\nhello\r\n0\r\n\r\n"],
];

const refused = attempts.map(([what, head, rest = ""]) => ({ what, head, rest }));

it.each(refused)("refuses a request with $what, and the site sees nothing whole of it", async ({ head, rest }) => {
  let wholeCount = 0;
  await using site = await startOrigin((request, response) => {
    request.resume().once("end", () => {
      wholeCount += 1;
      response.end();
    });
  });
  await using place = await startProxy();
  const lines = [`POST ${site.url}/sent HTTP/1.1`, "Host: x", ...head, "", rest];
  const answer = await raw(place.port, lines.join("\r\n"), 400);
  expect(answer).toMatch(/^(HTTP\/1\.1 (400|501) |$)/);
  expect(answer.match(/HTTP\/1\.1/g)?.length ?? 0).toBeLessThanOrEqual(1);
  expect(wholeCount).toBe(0);
  expect(site.seen.map(({ path }) => path)).not.toContain("/smuggled");
  expect((await curl(["-x", place.url, "-d", "x", `${site.url}/after`])).code).toBe(0);
  expect(site.seen.at(-1)?.path).toBe("/after");
});

it("keeps its own framing when Connection names the header that frames the body", async () => {
  await using site = await startOrigin((request, response, arrival) => {
    request.on("data", (piece: Buffer) => {
      arrival.bodyBytes += piece.length;
    });
    request.once("end", () => response.end("fine"));
  });
  await using place = await startProxy();
  const head = ["Host: x", "Connection: close, content-length, transfer-encoding, host"];
  const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
  const post = [`POST ${site.url}/a HTTP/1.1`, ...head, `Content-Length: ${smuggled.length}`, "", smuggled];
  expect(await raw(place.port, post.join("\r\n"))).toContain("fine");
  expect(site.seen.map(({ path, bodyBytes }) => [path, bodyBytes])).toEqual([["/a", smuggled.length]]);
  expect(site.seen[0].headers.host).toBe(`127.0.0.1:${site.port}`);
});

it("refuses an upgrade with 501, and passes over the offer of h2c", async () => {
  await using site = await startOrigin();
  await using place = await startProxy();
  const upgrade = (protocol: string): string =>
    `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;
  expect(await raw(place.port, upgrade("websocket"))).toMatch(/^HTTP\/1\.1 501 [\s\S]*CONNECT/);
  expect(site.seen).toHaveLength(0);
  expect(await raw(place.port, upgrade("h2c"), 300)).toContain("page /");
  expect(site.seen[0].headers.upgrade).toBeUndefined();
});

it.each([
  ["417", "an expectation that it cannot meet", "POST", "Host: x\r\nExpect: a miracle\r\nContent-Length: 2\r\n", "ok"],
  ["400", "no Host", "GET", "X-A: 1\r\n", ""],
])(
  "answers %s to %s, with problem details as for everything that it refuses",
  async (status, _what, method, head, body) => {
    await using site = await startOrigin();
    await using place = await startProxy();
    const answer = await raw(place.port, `${method} ${site.url}/ HTTP/1.1\r\n${head}\r\n${body}`);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toMatch(/application\/problem\+json[\s\S]*^Proxy-Status: politely/m);
    expect(site.seen).toHaveLength(0);
  },
);

it("answers 431 to headers of more than 32 KiB, 400 to what is no HTTP, and 408 to headers that do not end", async () => {
  await using site = await startOrigin();
  await using place = await startProxy({}, { headersTimeoutMs: 500 });
  const long = `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(33_000)}\r\n\r\n`;
  expect(await raw(place.port, long)).toMatch(/^HTTP\/1\.1 431 [\s\S]*application\/problem\+json/);
  expect(await raw(place.port, "hello\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 [\s\S]*application\/problem\+json/);
  expect(await raw(place.port, `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\n`, 5_000)).toMatch(/^HTTP\/1\.1 408 /);
  expect(site.seen).toHaveLength(0);
});

it("passes on 3,000 headers, which Node by itself would cut", async () => {
  await using site = await startOrigin();
  await using place = await startProxy();
  const many = Array.from({ length: 3_000 }, (_, index) => `a${index % 10}: 1`).join("\r\n");
  await raw(
    place.port,
    `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\n${many}\r\nConnection: close, last\r\nLast: 1\r\n\r\n`,
  );
  expect(site.seen[0].headers.last).toBeUndefined();
});

it("answers 502 to answers that can be read in two ways, and passes nothing of them on", async () => {
  for (const head of [
    "Content-Length: 3\r\nTransfer-Encoding: chunked",
    "Content-Length: 3\r\nContent-Length: 9",
    "Transfer-Encoding: gzip, chunked",
    "X-A: 1\rX-B: 2",
  ]) {
    const server = createServer((socket) => {
      socket.on("error", () => undefined).once("data", () => socket.end(`HTTP/1.1 200 OK\r\n${head}\r\n\r\nabc`));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    await using place = await startProxy();
    const { port } = server.address() as AddressInfo;
    const answer = await raw(place.port, `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect([head, answer.slice(0, 13)]).toEqual([head, "HTTP/1.1 502 "]);
    expect(answer).not.toContain("abc");
    expect(isSettled(place.limiter)).toBe(true);
    server.close();
  }
});

it("closes a connection that asks for more and more without reading, and serves others", async () => {
  await using site = await startOrigin(() => undefined);
  await using place = await startProxy();
  const get = `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\n\r\n`;
  const socket = await rawConnection(place.port, get.repeat(100));
  socket.resume();
  await once(socket, "close");
  expect(site.seen.length).toBeLessThanOrEqual(16);
});

it("accepts no more connections than it may have", async () => {
  await using site = await startOrigin();
  await using place = await startProxy({}, { maxConnections: 2 });
  const held = [await rawConnection(place.port, "GET"), await rawConnection(place.port, "GET")];
  const third = await rawConnection(place.port, `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  await once(third, "close");
  expect(site.seen).toHaveLength(0);
  for (const socket of held) socket.destroy();
});

it("refuses a request that has passed it before", async () => {
  await using site = await startOrigin();
  await using place = await startProxy();
  await raw(place.port, `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  const via = site.seen[0].headers.via ?? "";
  expect(via).toMatch(/^1\.1 politely-[0-9a-f]{12}$/);
  const again = `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\nVia: 1.0 other, ${via}\r\n\r\n`;
  expect(await raw(place.port, again)).toMatch(/^HTTP\/1\.1 508 /);
});
