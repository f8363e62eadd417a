import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import fc from "fast-check";
import { expect, it } from "vitest";
import { seeded } from "../../../../politely/test/laws/seeded.js";
import { eventually, isSettled, type ProxyPlace, raw, startProxy } from "./place.js";

/** A site that answers every request with the same bytes, and closes if it is told so. */
class RawSite implements AsyncDisposable {
  bytes = "";
  isClosing = true;
  readonly server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", () => {
      socket.write(this.bytes, "latin1");
      if (this.isClosing) socket.end();
    });
  });

  static async start(): Promise<RawSite> {
    const site = new RawSite();
    site.server.listen(0, "127.0.0.1");
    await once(site.server, "listening");
    return site;
  }

  /** What a client of the proxy gets for a GET. */
  asked({ port }: ProxyPlace): Promise<string> {
    const { port: own } = this.server.address() as AddressInfo;
    return raw(port, `GET http://127.0.0.1:${own}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, 5_000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.close();
    await once(this.server, "close");
  }
}

const policy = { default: { concurrency: 2, backoff: "none" }, localhost: "limited" } as const;

it.each([
  ["a control character in its status line", "HTTP/1.1 200 O\u0001K\r\ncontent-length: 2\r\n\r\nok"],
  ["a status below 100", "HTTP/1.1 099 Low\r\ncontent-length: 2\r\n\r\nok"],
  ["a switch of protocols that nobody asked for", "HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nmore"],
  ["nothing but informational answers", "HTTP/1.1 103 Early\r\nlink: x\r\n\r\n".repeat(20)],
])("answers 502 to a site that sends %s, and serves on", async (_what, bytes) => {
  await using place = await startProxy(policy, { timeoutMs: 2_000 });
  await using site = await RawSite.start();
  site.bytes = bytes;
  for (const isClosing of [true, false]) {
    site.isClosing = isClosing;
    expect((await site.asked(place)).split("\r\n")[0]).toMatch(/^HTTP\/1.1 50[24] /);
  }
  await eventually(() => isSettled(place.limiter), "every place is free");
  site.bytes = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
  expect(await site.asked(place)).toMatch(/^HTTP\/1.1 200 OK\r\n(.+\r\n)+\r\nok$/);
  expect(place.complaints).toEqual([]);
});

const anyPiece = fc.oneof(
  fc.constantFrom(
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 429 No\r\n",
    "HTTP/1.0 200\r\n",
    "HTTP/1.1 101 X\r\n",
    "HTTP/1.1 204 N\r\n",
  ),
  fc.constantFrom(
    "content-length: 2\r\n",
    "transfer-encoding: chunked\r\n",
    "connection: upgrade\r\n",
    "upgrade: x\r\n",
  ),
  fc.constantFrom(
    "retry-after: 1e9\r\n",
    "set-cookie: a=b\r\n",
    "location: http://[\r\n",
    "\r\n",
    "ok",
    "2\r\nok\r\n0\r\n\r\n",
  ),
  fc.string({ maxLength: 8, unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) }),
);

it("keeps serving whatever a site sends, and keeps no place", { timeout: 120_000 }, async () => {
  await using place = await startProxy(policy, { timeoutMs: 300 });
  await using site = await RawSite.start();
  await fc.assert(
    fc.asyncProperty(fc.array(anyPiece, { minLength: 1, maxLength: 8 }), async (pieces) => {
      site.bytes = pieces.join("");
      // A cooldown that one of them asked for is not what is looked at here.
      place.limiter.reset(undefined, "all");
      const answer = await site.asked(place);
      expect(answer).toMatch(/^(HTTP\/1.1 \d{3} |$)/);
    }),
    seeded(250),
  );
  await eventually(() => isSettled(place.limiter), "every place is free");
  expect(place.complaints).toEqual([]);
});
