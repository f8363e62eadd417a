import { once } from "node:events";
import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { readAll, requestText, Started, until } from "./started.js";

/** Whatever was done to it, the service still serves, wrote nothing to its log, holds nothing, and its books balance. */
async function isWell(started: Started): Promise<boolean> {
  const { body } = await started.post("/v1/acquire", { domain: "well.org" });
  expect((await started.post("/v1/release", { permit: body.permit, outcome: "success" })).status).toBe(204);
  await until(() => started.service.callers.size === 0 && started.service.permits.size === 0, "nothing is left over");
  for (const row of started.limiter.stats()) {
    expect(row.asked).toBe(row.granted + row.refused + row.cancelled + row.expired + row.waiting);
    expect(row.granted).toBe(row.released + row.lapsed + row.inFlight);
    expect([row.waiting, row.inFlight]).toEqual([0, 0]);
  }
  expect(started.lines).toEqual([]);
  return true;
}

it("names each field that is wrong, and takes nothing", async () => {
  await using started = await Started.with({ isWritable: true });
  const cases: [path: string, body: unknown, fields: string[]][] = [
    ["/v1/check", {}, ["domain"]],
    ["/v1/check", { domain: "" }, ["domain"]],
    ["/v1/check", { domain: 5 }, ["domain"]],
    ["/v1/check", { domain: "http://" }, ["domain"]],
    ["/v1/check", { domain: "a b" }, ["domain"]],
    ["/v1/check", { domain: "x".repeat(5_000) }, ["domain"]],
    ["/v1/check", [], ["body"]],
    ["/v1/check", null, ["body"]],
    ["/v1/acquire", { domain: "x.org", maxWaitMs: "1000" }, ["maxWaitMs"]],
    ["/v1/acquire", { domain: "x.org", maxWaitMs: -1, ttlMs: 99 }, ["maxWaitMs", "ttlMs"]],
    ["/v1/acquire", { domain: "x.org", ttlMs: 3_600_001 }, ["ttlMs"]],
    ["/v1/acquire", { domain: "x.org", priority: null }, ["priority"]],
    ["/v1/acquire", { domain: "x.org", cost: 0 }, ["cost"]],
    ["/v1/acquire", { domain: "x.org", cost: 2_000 }, ["cost"]],
    ["/v1/pause", { domain: "5s" }, ["domain"]],
    ["/v1/acquire", { domain: "x.org", intent: "\u0000" }, ["intent"]],
    ["/v1/acquire", { domain: "x.org", scopes: ["nobody"] }, ["scopes"]],
    ["/v1/acquire", { domain: "x.org", max_wait: 5 }, ["max_wait"]],
    ["/v1/renew", {}, ["permit"]],
    ["/v1/renew", { permit: 7 }, ["permit"]],
    ["/v1/release", { permit: "x", outcome: "fine" }, ["outcome"]],
    ["/v1/release", { permit: "x", status: 99 }, ["status"]],
    ["/v1/release", { permit: "x", outcome: "success", status: 200 }, ["status"]],
    ["/v1/release", { permit: "x", headers: {} }, ["headers"]],
    ["/v1/release", { permit: "x", status: 200, headers: { a: {} } }, ["headers.a"]],
    ["/v1/release", { permit: "x", status: 200, headers: { a: {}, b: null } }, ["headers.a", "headers.b"]],
    ["/v1/record", { domain: "x.org" }, ["outcome"]],
    ["/v1/record", { domain: "x.org", outcome: "unused" }, ["outcome"]],
    ["/v1/record", { domain: "x.org", outcome: "timeout", retryAfterMs: "5" }, ["retryAfterMs"]],
  ];
  for (const [path, sent, fields] of cases) {
    const { status, body } = await started.post(path, sent);
    const errors = (body.errors ?? []) as { field: string }[];
    const named = errors.map(({ field }) => field);
    expect([path, sent, status, named]).toEqual([path, sent, 422, fields]);
  }
  expect(started.limiter.stats("x.org")?.granted ?? 0).toBe(0);
  expect(await isWell(started)).toBe(true);
});

it("answers 400 to what is no JSON, 415 to another media type, and poisons no prototype", async () => {
  await using started = await Started.with();
  for (const text of ["{", '{"domain":"x.org"', "undefined", "{'domain':1}", "\u0000", ""]) {
    const { status, body } = await started.post("/v1/check", text);
    expect([text, status, body.errors]).toEqual([
      text,
      400,
      [{ field: "body", message: expect.stringMatching(/^is (not JSON|empty)/) as unknown }],
    ]);
  }
  for (const type of ["text/plain", "application/xml", "multipart/form-data; boundary=x", "", "application/json5"]) {
    const { status } = await started.post("/v1/check", "{}", { headers: { "content-type": type } });
    expect([type, status]).toEqual([type, 415]);
  }
  for (const text of [
    '{"domain":"x.org","__proto__":{"intent":"y"}}',
    '{"domain":"x.org","constructor":{"prototype":{}}}',
  ]) {
    const { status, body } = await started.post("/v1/check", text);
    expect([status, body.detail]).toEqual([422, expect.stringContaining("is not a field of this request")]);
  }
  expect(Reflect.get({}, "intent")).toBeUndefined();
  expect(await isWell(started)).toBe(true);
});

/** Sends `total` bytes in pieces, until the other side has enough. Resolves to how many were taken. */
async function pour(socket: Socket, total: number, wrap: (piece: Buffer) => Buffer): Promise<number> {
  const piece = wrap(Buffer.alloc(65_536, 0x20));
  let sent = 0;
  while (sent < total && !socket.destroyed && socket.writable) {
    sent += 65_536;
    if (socket.write(piece)) continue;
    await Promise.race([once(socket, "drain"), once(socket, "close")]).catch(() => undefined);
  }
  return socket.bytesWritten - socket.writableLength;
}

it("says what a path has that cannot be decoded", async () => {
  await using started = await Started.with();
  const said = async (path: string) => (await started.get(path)).body.detail;
  expect(await said("/v1/explain/%ff")).toContain("is not UTF-8");
  expect(await said("/v1/explain/%fg")).toContain("two hexadecimal digits");
  expect(await said("/v1/explain/a%2")).toContain("two hexadecimal digits");
});

it("cuts a body of 100 MB off early, whether its length is told or not", async () => {
  await using started = await Started.with();
  const total = 100 * 2 ** 20;
  const head = "POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
  const ways: Record<string, [string, (piece: Buffer) => Buffer]> = {
    told: [`content-length: ${total}\r\n\r\n`, (piece) => piece],
    chunked: [
      "transfer-encoding: chunked\r\n\r\n",
      (piece) => Buffer.concat([Buffer.from("10000\r\n"), piece, Buffer.from("\r\n")]),
    ],
  };
  for (const [way, [rest, wrap]] of Object.entries(ways)) {
    const socket = await started.connect();
    const before = process.memoryUsage();
    const answer = readAll(socket);
    socket.write(head + rest);
    const taken = await pour(socket, total, wrap);
    expect([way, taken < 20 * 2 ** 20]).toEqual([way, true]);
    // A peer that is still sending may lose the answer; if it came, it says what is wrong.
    const text = await answer;
    expect(text).toMatch(/^($|HTTP\/1\.1 413 .*application\/problem\+json.*"status":413)/s);
    expect(process.memoryUsage().rss - before.rss).toBeLessThan(60e6);
    expect(await isWell(started)).toBe(true);
  }
});

it("says 413 to a body a little too large, and closes the connection", async () => {
  await using started = await Started.with();
  const { status, headers } = await started.post("/v1/check", { domain: "x.org", intent: "y".repeat(70_000) });
  expect([status, headers.get("connection")]).toEqual([413, "close"]);
  expect(await isWell(started)).toBe(true);
});

it("closes connections that send their headers or their body too slowly, or nothing at all", async () => {
  await using started = await Started.with({ server: { headersMs: 200, requestMs: 400 } });
  const texts = {
    nothing: "",
    "half a line": "POST /v1/acq",
    "headers without end": "POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\nx: ",
    "half a body":
      'POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{"dom',
  };
  const sockets = await Promise.all(
    Object.entries(texts).map(async ([name, text]) => {
      const socket = await started.connect();
      socket.write(text);
      // One byte at a time keeps nothing alive: the whole counts.
      const drip = setInterval(() => socket.writable && text !== "" && socket.write("a"), 50);
      const answer = await readAll(socket);
      clearInterval(drip);
      return [name, answer.slice(0, 12)] as const;
    }),
  );
  expect(Object.fromEntries(sockets)).toEqual({
    nothing: "HTTP/1.1 408",
    "half a line": "HTTP/1.1 408",
    "headers without end": "HTTP/1.1 408",
    "half a body": expect.stringMatching(/^(HTTP\/1.1 408|HTTP\/1.1 400|)$/) as unknown,
  });
  expect(await isWell(started)).toBe(true);
});

it("takes no more connections than its bound, and takes new ones when others go", async () => {
  await using started = await Started.with({ server: { maxConnections: 20 } });
  const sockets = await Promise.all(Array.from({ length: 60 }, () => started.connect()));
  let closed = 0;
  for (const socket of sockets) {
    socket.resume();
    socket.once("end", () => closed++);
  }
  await until(() => closed >= 40, "forty are closed");
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await isWell(started)).toBe(true);
});

it("answers what is no HTTP with a problem, and closes", async () => {
  await using started = await Started.with();
  const body = '{"domain":"x.org"}';
  const json = "content-type: application/json\r\n";
  const cases: Record<string, [text: string, status: string]> = {
    "another protocol": ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"],
    "no host": [`POST /v1/check HTTP/1.1\r\n${json}content-length: 18\r\n\r\n${body}`, "421"],
    "two lengths": [
      `POST /v1/check HTTP/1.1\r\nhost: localhost\r\n${json}content-length: 18\r\ncontent-length: 5\r\n\r\n${body}`,
      "400",
    ],
    "length and chunks": [
      `POST /v1/check HTTP/1.1\r\nhost: localhost\r\n${json}content-length: 18\r\ntransfer-encoding: chunked\r\n\r\n${body}`,
      "400",
    ],
    "a header without end": [`GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ${"a".repeat(20_000)}\r\n\r\n`, "431"],
    "an expectation": [
      `POST /v1/check HTTP/1.1\r\nhost: localhost\r\nexpect: a miracle\r\n${json}content-length: 18\r\n\r\n${body}`,
      "417",
    ],
    "a path that cannot be decoded": [
      "GET /v1/stats/%ff%zz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
      "400",
    ],
    "a path without end": [
      `GET /v1/stats/${"a".repeat(5_000)} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
      "414",
    ],
  };
  for (const [name, [text, status]] of Object.entries(cases)) {
    const socket = await started.connect();
    socket.write(text);
    socket.end();
    const answer = await readAll(socket);
    expect([name, answer.slice(9, 12)]).toEqual([name, status]);
    expect([name, answer.includes("application/problem+json")]).toEqual([name, true]);
  }
  expect(await isWell(started)).toBe(true);
});

it("forgets callers that send half a request and go, or close one side and stay", async () => {
  await using started = await Started.with({ policy: { default: { concurrency: 1 } } });
  const { body } = await started.post("/v1/acquire", { domain: "x.org" });
  const whole = requestText("/v1/acquire", { domain: "x.org" });
  for (let cut = 1; cut < whole.length; cut += 15) {
    const socket = await started.connect();
    socket.write(whole.slice(0, cut));
    socket.end();
    await readAll(socket);
  }
  const staying = await Promise.all(
    Array.from({ length: 30 }, async () => {
      const socket = await started.connect();
      socket.end(whole);
      return socket;
    }),
  );
  await Promise.all(staying.map((socket) => readAll(socket)));
  await started.post("/v1/release", { permit: body.permit });
  expect(await isWell(started)).toBe(true);
});
