import fc from "fast-check";
import { type Limiter, politely } from "politely";
import { expect, it } from "vitest";
import { seeded } from "../../../../politely/test/laws/seeded.js";
import type { TurnLimiter } from "../../../src/serve/proxy/turns.js";
import { type Arrival, type Origin, startOrigin } from "./origin.js";
import { curl, isSettled, type ProxyPlace, raw, startProxy } from "./place.js";

/** Bytes that mean something somewhere in HTTP, and some that do not. */
const crumbs = [
  "\r\n",
  "\n",
  "\r",
  "\0",
  " ",
  "\t",
  ":",
  ",",
  ";",
  "\\",
  "@",
  "#",
  "%00",
  "%0d%0a",
  "..",
  "//",
  "\x80\xff",
  "GET ",
  "POST ",
  "CONNECT ",
  " HTTP/1.1",
  " HTTP/1.0",
  " HTTP/2.0",
  "Host: x",
  "Content-Length: 3",
  "Content-Length: 0",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding:\x0bchunked",
  "Connection: close",
  "Connection: content-length",
  "Connection: upgrade",
  "Upgrade: websocket",
  "Expect: 100-continue",
  "0\r\n\r\n",
  "5\r\nhello\r\n",
  "\r\n\r\n",
];

/** A request that would be fine, in parts, with something put in between, taken out or repeated. */
function mangled(site: Origin): fc.Arbitrary<string> {
  const target = fc
    .tuple(fc.constantFrom("", "/", "/-/", "authority"), fc.nat(1_000_000))
    .map(([form, number]) => (form === "authority" ? `127.0.0.1:${site.port}` : `${form}${site.url}/fuzz${number}`));
  const crumb = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...crumbs) },
    fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
  );
  const change = fc.record({
    at: fc.nat(400),
    kind: fc.constantFrom("insert", "insert", "cut", "repeat"),
    size: fc.nat(12),
    crumb,
  });
  const method = fc.constantFrom("GET", "POST", "HEAD", "OPTIONS", "CONNECT", "PUT");
  const header = fc.constantFrom(...crumbs.filter((each) => /^\w[\w-]*:/.test(each)), "X-A: b", "Cookie: a=b");
  return fc
    .tuple(
      method,
      target,
      fc.array(header, { maxLength: 4 }),
      fc.array(change, { maxLength: 4 }),
      fc.constantFrom("", "abc"),
    )
    .map(([verb, url, headers, changes, body]) => {
      let text = [`${verb} ${url} HTTP/1.1`, "Host: localhost", ...headers, "", body].join("\r\n");
      for (const { at, kind, size, crumb: put } of changes) {
        const place = at % (text.length + 1);
        const [before, after] = [text.slice(0, place), text.slice(place)];
        if (kind === "insert") text = before + put + after;
        else if (kind === "cut") text = before + after.slice(size);
        else text = before + after.slice(0, size) + after;
      }
      return text;
    });
}

/**
 * What a site may see of all that was sent: each path at most as often as it stands in it, with a method that does.
 *
 * Of all, since on a busy machine the requests of one round arrive in the next.
 */
function expectExplained(arrivals: readonly Arrival[], text: string): void {
  const lineCount = text.split(/HTTP\/1\.[01]/).length - 1;
  expect(arrivals.length).toBeLessThanOrEqual(lineCount);
  const counts = new Map<string, number>();
  for (const { path } of arrivals) counts.set(path, (counts.get(path) ?? 0) + 1);
  // Behind the origin, with a slash in front of it where there was none.
  const isExplained = ([path, count]: readonly [string, number]): boolean =>
    path === "/" || text.split(path.slice(1)).length - 1 >= count;
  expect([...counts].filter((each) => !isExplained(each))).toEqual([]);
  for (const { method, headers, rawHeaders } of arrivals) {
    expect(text).toContain(method);
    expect(headers.host).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(rawHeaders.filter((name, index) => index % 2 === 0 && /^host$/i.test(name))).toHaveLength(1);
    expect(headers["content-length"] !== undefined && headers["transfer-encoding"] !== undefined).toBe(false);
    expect(headers.upgrade ?? headers.expect ?? headers["proxy-authorization"]).toBeUndefined();
    expect(rawHeaders.join("")).not.toMatch(/[\r\n\0]/);
  }
}

/** A mangled host may be anybody's: whatever is not the site is refused before anything is sent. */
function only(host: string, limiter: Limiter): TurnLimiter {
  return {
    acquire(target, options) {
      if (typeof target === "string" && new URL(target).host === host) return limiter.acquire(target, options);
      return Promise.reject(new TypeError("another host"));
    },
  };
}

async function expectServing(place: ProxyPlace, site: Origin): Promise<void> {
  const { stdout } = await curl(["-x", place.url, `${site.url}/still-there`]);
  expect(stdout).toBe("page /still-there");
}

it("keeps serving whatever bytes come, and the site never sees a request that was not sent", {
  timeout: 120_000,
}, async () => {
  await using site = await startOrigin((request, response) => {
    request.resume().once("end", () => response.end(request.url === "/still-there" ? "page /still-there" : "ok"));
  });
  const limiter = politely();
  await using place = await startProxy(
    {},
    {
      timeoutMs: 500,
      // A tunnel passes on whatever comes.
      connectPorts: [443],
      headersTimeoutMs: 1_000,
      limiter: only(`127.0.0.1:${site.port}`, limiter),
    },
  );
  let sent = "";
  let checkedCount = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(mangled(site), { minLength: 8, maxLength: 8 }), async (texts) => {
      // At once, each on a connection of its own.
      const answers = await Promise.all(texts.map((text) => raw(place.port, text, 60)));
      for (const answer of answers) expect(answer).toMatch(/^(HTTP\/1\.1 [1-5]\d\d |$)/);
      sent += `${texts.join("\n")}\n`;
      expectExplained(site.seen.slice(checkedCount), sent);
      checkedCount = site.seen.length;
      expect(site.malformed).toEqual([]);
    }),
    { ...seeded(60), endOnFailure: true },
  );
  await expect.poll(() => isSettled(limiter), { timeout: 5_000 }).toBe(true);
  expectExplained(site.seen, sent);
  await expectServing(place, site);
  expect(place.complaints).toEqual([]);
});

it("keeps serving when the bytes are no HTTP at all", async () => {
  await using site = await startOrigin();
  await using place = await startProxy();
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 300 }), async (bytes) => {
      const answer = await raw(place.port, Buffer.from(bytes).toString("latin1"), 10);
      expect(answer).toMatch(/^(HTTP\/1\.1 4\d\d |$)/);
    }),
    { ...seeded(100), endOnFailure: true },
  );
  await expectServing(place, site);
  expect(site.seen).toHaveLength(1);
  expect(place.complaints).toEqual([]);
});
