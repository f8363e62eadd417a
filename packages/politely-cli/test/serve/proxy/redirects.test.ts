import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { expect, it } from "vitest";
import { raw, startProxy } from "./place.js";

/** Asks the gateway for a page of a site that answers with one header, byte by byte as written. Gives the header as the client sees it. */
async function passedOn(name: string, value: Buffer): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.write(`HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close\r\n${name}: `);
      socket.end(Buffer.concat([value, Buffer.from("\r\n\r\n")]));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const { port } = server.address() as AddressInfo;
    await using place = await startProxy();
    const get = `GET /http://127.0.0.1:${port}/a/b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    const answer = await raw(place.port, get);
    const [, passed = ""] = new RegExp(`^${name}: (.*)\r$`, "m").exec(answer) ?? [];
    return passed.replace(`127.0.0.1:${port}`, "SITE");
  } finally {
    server.close();
  }
}

it.each([
  ["UTF-8 in the path", Buffer.from("/größe"), "/http://SITE/gr%C3%B6%C3%9Fe"],
  ["UTF-8 in the query", Buffer.from("?q=größe"), "/http://SITE/a/b?q=gr%C3%B6%C3%9Fe"],
  ["what is escaped already", Buffer.from("/gr%C3%B6ße"), "/http://SITE/gr%C3%B6%C3%9Fe"],
  ["bytes that are no UTF-8", Buffer.from("/gr\u00f6", "latin1"), "/http://SITE/gr%F6"],
  ["UTF-8 in the host", Buffer.from("https://größe.example/"), "/https://xn--gre-6ka8i.example/"],
])("leads to the same place through the gateway as without: %s", async (_, value, wanted) => {
  expect(await passedOn("Location", value)).toBe(wanted);
});

it("leads to the same place after some seconds", async () => {
  expect(await passedOn("Refresh", Buffer.from("5; url=/größe"))).toBe("5; url=/http://SITE/gr%C3%B6%C3%9Fe");
});
