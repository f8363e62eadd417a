import { politely } from "politely";
import { threadMemory, threadStore } from "politely/threads";
import { expect, it } from "vitest";
import { selfSigned, startOrigin } from "./origin.js";
import { curl, eventually, isSettled, raw, rawConnection, startProxy } from "./place.js";

const certificate = selfSigned();
const onLoopback = (limits: object) => ({ hosts: { "127.0.0.1": limits, localhost: limits } });

it("never starts 20 requests of curl through http_proxy faster than 10 a second", async () => {
  await using site = await startOrigin();
  // Counted from the answer, the site cannot see two closer than the gap, however the way jitters.
  await using place = await startProxy(onLoopback({ minDelay: 100, countFrom: "answer" }));
  const args = ["--parallel", "--parallel-max", "20", "-x", place.url, "-o", "/dev/null", "-w", "%{http_code}\n"];
  const { code, stdout } = await curl([...args, `${site.url}/page-[1-20]`]);
  expect(code).toBe(0);
  expect(stdout.trim().split("\n")).toEqual(Array<string>(20).fill("200"));
  const gaps = site.seen.slice(1).map(({ atMs }, index) => atMs - site.seen[index].atMs);
  expect(gaps).toHaveLength(19);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(100);
  expect(new Set(site.seen.map(({ path }) => path)).size).toBe(20);
  expect(isSettled(place.limiter)).toBe(true);
});

it("paces requests to https through the gateway one by one, and tells how long each waited", async () => {
  await using site = await startOrigin(undefined, certificate);
  await using place = await startProxy(onLoopback({ minDelay: 200, countFrom: "answer" }), { ca: [certificate.cert] });
  const { stdout } = await curl(["-i", `${place.url}/${site.url}/a?x=1&y=%20`, `${place.url}/${site.url}/b`]);
  expect(stdout).toContain("page /a?x=1&y=%20");
  expect(stdout).toContain("page /b");
  const waits = [...stdout.matchAll(/^Politely-Waited-Ms: (\d+)/gm)].map(([, ms]) => Number(ms));
  expect(waits).toHaveLength(2);
  expect(waits[0]).toBeLessThan(100);
  expect(site.seen[1].atMs - site.seen[0].atMs).toBeGreaterThanOrEqual(200);
});

it("hears a 429 with Retry-After, of plain HTTP and of HTTPS, and holds the next request back", async () => {
  for (const secure of [undefined, certificate]) {
    await using site = await startOrigin((_, response) => {
      const isFirst = site.seen.length === 1;
      response.writeHead(isFirst ? 429 : 200, isFirst ? { "retry-after": "1" } : {}).end("body");
    }, secure);
    await using place = await startProxy(onLoopback({ rate: "100/s" }), { ca: [certificate.cert] });
    const url = secure === undefined ? `${site.url}/` : `${place.url}/${site.url}/`;
    const via = secure === undefined ? ["-x", place.url] : [];
    const status = ["-o", "/dev/null", "-w", "%{http_code}"];
    expect((await curl([...via, ...status, url])).stdout).toBe("429");
    expect((await curl([...via, ...status, url])).stdout).toBe("200");
    expect(site.seen[1].atMs - site.seen[0].atMs).toBeGreaterThanOrEqual(1_000);
    expect(place.events.some(({ type }) => type === "cooldown")).toBe(true);
  }
});

it("holds the host as soon as the headers of a 429 are there, though the body goes on", async () => {
  await using site = await startOrigin(
    (_, response) => void response.writeHead(429, { "retry-after": "7" }).write("x"),
  );
  await using place = await startProxy(onLoopback({ rate: "100/s" }));
  const socket = await rawConnection(place.port, `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  await eventually(() => place.limiter.check("127.0.0.1").waitMs > 5_000, "the host is held");
  expect(place.limiter.stats("127.0.0.1")?.inFlight).toBe(1);
  socket.destroy();
  await eventually(() => isSettled(place.limiter), "the place is free");
});

it("cancels the wait of a client that goes away, and the next one takes its place", async () => {
  await using site = await startOrigin();
  await using place = await startProxy(onLoopback({ minDelay: "1h" }));
  expect((await curl(["-x", place.url, `${site.url}/first`])).stdout).toBe("page /first");
  for (const request of [
    `GET ${site.url}/away HTTP/1.1\r\nHost: x\r\n\r\n`,
    `GET /${site.url}/away HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    `POST ${site.url}/away HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab`,
    `CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: x\r\n\r\n`,
  ]) {
    const socket = await rawConnection(place.port, request);
    await eventually(() => place.proxy.waitingCount === 1, "it waits");
    socket.destroy();
    await eventually(() => place.proxy.waitingCount === 0, "it has left");
  }
  expect(place.limiter.stats("127.0.0.1")).toMatchObject({ cancelled: 4, granted: 1, waiting: 0, inFlight: 0 });
  expect(site.seen).toHaveLength(1);
  expect(isSettled(place.limiter)).toBe(true);
});

it("cancels the waits of all requests that a client had sent on one connection", async () => {
  await using site = await startOrigin();
  await using place = await startProxy(onLoopback({ minDelay: "1h" }));
  await curl(["-x", place.url, `${site.url}/first`]);
  const get = `GET ${site.url}/away HTTP/1.1\r\nHost: x\r\n\r\n`;
  const socket = await rawConnection(place.port, get.repeat(5));
  await eventually(() => place.proxy.waitingCount === 5, "all wait");
  socket.destroy();
  await eventually(() => place.proxy.waitingCount === 0, "all have left");
  expect(place.limiter.stats("127.0.0.1")).toMatchObject({ cancelled: 5, granted: 1 });
  expect(site.seen).toHaveLength(1);
});

it("waits for a slow site longer than it keeps idle connections", async () => {
  await using site = await startOrigin((_, response) => void setTimeout(() => response.end("late"), 3_500));
  await using place = await startProxy();
  expect((await curl(["-x", place.url, `${site.url}/`])).stdout).toBe("late");
});

it("frees the place of a client that goes away in the middle of the answer", async () => {
  await using site = await startOrigin((_, response) => void response.writeHead(200).write("the beginning"));
  await using place = await startProxy(onLoopback({ concurrency: 1 }));
  const stop = new AbortController();
  const curling = curl(["-N", "-x", place.url, `${site.url}/`], stop.signal);
  await eventually(() => site.seen.length === 1, "the site is asked");
  expect(place.limiter.stats("127.0.0.1")?.inFlight).toBe(1);
  stop.abort();
  await curling;
  await eventually(() => isSettled(place.limiter), "the place is free");
  expect(place.events.some(({ type }) => type === "cooldown")).toBe(false);
});

it("keeps a place until the last byte has come, so that no more are under way than allowed", async () => {
  let underWay = 0;
  let most = 0;
  await using site = await startOrigin((_, response) => {
    underWay += 1;
    most = Math.max(most, underWay);
    response.writeHead(200).write("a");
    setTimeout(() => {
      underWay -= 1;
      response.end("b");
    }, 20);
  });
  await using place = await startProxy(onLoopback({ concurrency: 3 }));
  const args = ["--parallel", "--parallel-max", "20", "-x", place.url, "-o", "/dev/null"];
  expect((await curl([...args, `${site.url}/[1-20]`])).code).toBe(0);
  expect(site.seen).toHaveLength(20);
  expect(most).toBeLessThanOrEqual(3);
});

it("answers 429 with Retry-After and the reason when the wait would be too long", async () => {
  await using site = await startOrigin();
  await using place = await startProxy(onLoopback({ minDelay: "90s", maxWait: "1s" }));
  const get = `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\n\r\n`;
  expect(await raw(place.port, get, 300)).toContain("page /");
  const refused = await raw(place.port, get);
  const [head, body] = refused.split("\r\n\r\n");
  expect(head).toMatch(/^HTTP\/1\.1 429 /);
  expect(head).toMatch(/^Content-Type: application\/problem\+json$/m);
  expect(head).toMatch(/^Proxy-Status: politely; error=http_request_denied$/m);
  const seconds = Number(/^Retry-After: (\d+)$/m.exec(head)?.[1]);
  expect(seconds).toBeGreaterThan(80);
  expect(seconds).toBeLessThanOrEqual(90);
  expect(JSON.parse(body)).toMatchObject({ status: 429, code: "POLITELY_DEADLINE" });
  expect(body).toMatch(/"waitMs":\d+.*"reason":".+"/);
  expect(site.seen).toHaveLength(1);
});

it("answers 429 without Retry-After when there is no end of the wait in sight", async () => {
  await using place = await startProxy(onLoopback({ rate: "100/s", maxWait: "1s" }), { connectPorts: [9] });
  place.limiter.pause("127.0.0.1");
  for (const line of ["GET http://127.0.0.1:9/", "CONNECT 127.0.0.1:9"]) {
    const [head, body] = (await raw(place.port, `${line} HTTP/1.1\r\nHost: x\r\n\r\n`)).split("\r\n\r\n");
    expect(head).toMatch(/^HTTP\/1\.1 429 /);
    expect(head).not.toMatch(/Retry-After/i);
    expect(JSON.parse(body)).toMatchObject({ code: "POLITELY_DEADLINE", waitMs: null });
    expect(body).toMatch(/"detail":"[^}]*no end in sight/);
    expect(body).not.toContain("Infinity");
  }
});

it("answers 503 with Retry-After when a lane is full, when the proxy is full, and when it stops", async () => {
  await using site = await startOrigin();
  await using place = await startProxy(onLoopback({ minDelay: "1h", maxQueue: 1 }), { maxWaiting: 1 });
  const get = (host: string): string => `GET http://${host}:${site.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`;
  await raw(place.port, get("127.0.0.1"), 200);
  const waiting = raw(place.port, get("127.0.0.1"), 10_000);
  await eventually(() => place.proxy.waitingCount === 1, "one waits");
  const full = await raw(place.port, get("localhost"));
  expect(full).toMatch(/^HTTP\/1\.1 503 [\s\S]*^Retry-After: 1$/m);
  expect(full).toContain('"code":"full"');
  const closing = place.proxy.close({ graceMs: 2_000 });
  const stopped = await waiting;
  expect(stopped).toMatch(/^HTTP\/1\.1 503 [\s\S]*^Retry-After: \d+$/m);
  expect(stopped).toContain('"code":"stopping"');
  await closing;

  await using narrow = await startProxy(onLoopback({ minDelay: "1h", maxQueue: 1 }));
  await raw(narrow.port, get("127.0.0.1"), 200);
  const second = await rawConnection(narrow.port, get("127.0.0.1"));
  await eventually(() => narrow.proxy.waitingCount === 1, "one waits");
  expect(await raw(narrow.port, get("127.0.0.1"))).toMatch(/^HTTP\/1\.1 503 [\s\S]*POLITELY_QUEUE_FULL/);
  second.destroy();
});

it("tells the limiter of a site that is silent, closed or no HTTP, and its client with 504 or 502", async () => {
  await using silent = await startOrigin(() => undefined);
  await using broken = await startOrigin((request) => void request.socket.end("nonsense\r\n\r\n"));
  const limits = { backoff: { kind: "linear", base: "50s", max: "90s" } } as const;
  for (const [port, status, because] of [
    [silent.port, 504, "timeout"],
    [broken.port, 502, "HPE_INVALID_CONSTANT"],
    [1, 502, "ECONNREFUSED"],
  ] as const) {
    await using place = await startProxy(onLoopback(limits), { timeoutMs: 300 });
    const answer = await raw(place.port, `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`, 5_000);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toMatch(/^Proxy-Status: politely; error=/m);
    const { waitMs, causes } = place.limiter.explain("127.0.0.1");
    expect(waitMs).toBeGreaterThan(1_000);
    expect(JSON.stringify(causes)).toContain(because === "timeout" ? "no answer in time" : because);
    expect(isSettled(place.limiter)).toBe(true);
  }
});

it("paces and hears with a limiter that shares its limits through a store", async () => {
  await using site = await startOrigin((_, response) => {
    const isThird = site.seen.length === 3;
    response.writeHead(isThird ? 429 : 200, isThird ? { "retry-after": "30" } : {}).end("body");
  });
  const limits = { minDelay: 100, countFrom: "answer", concurrency: 1 } as const;
  const limiter = politely(onLoopback(limits), { store: threadStore(threadMemory()) });
  await using place = await startProxy({}, { limiter });
  for (let index = 0; index < 3; index++) await curl(["-x", place.url, `${site.url}/${index}`]);
  expect(site.seen[1].atMs - site.seen[0].atMs).toBeGreaterThanOrEqual(100);
  expect(site.seen[2].atMs - site.seen[1].atMs).toBeGreaterThanOrEqual(100);
  const socket = await rawConnection(place.port, `GET ${site.url}/held HTTP/1.1\r\nHost: x\r\n\r\n`);
  await eventually(() => place.proxy.waitingCount === 1, "it waits");
  expect((await limiter.check("127.0.0.1")).waitMs).toBeGreaterThan(20_000);
  socket.destroy();
  await eventually(() => place.proxy.waitingCount === 0, "it has left");
  expect(await limiter.stats("127.0.0.1")).toMatchObject({ granted: 3, released: 3, cancelled: 1, inFlight: 0 });
  expect(site.seen).toHaveLength(3);
  await limiter.close();
});
