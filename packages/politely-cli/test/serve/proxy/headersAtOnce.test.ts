import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { expect, it } from "vitest";
import { startOrigin } from "./origin.js";
import { eventually, isSettled, raw, rawConnection, startProxy } from "./place.js";

const limits = { hosts: { "127.0.0.1": { concurrency: 4 } } };

it.each([
  ["as http_proxy", ""],
  ["through the gateway", "/"],
])("passes an answer's headers on %s before there is a byte of its body", async (_, before) => {
  let finish: () => void = () => undefined;
  await using site = await startOrigin((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    finish = () => void response.end("data: 1\n\n");
  });
  await using place = await startProxy(limits);
  const asked = request({ host: "127.0.0.1", port: place.port, path: `${before}${site.url}/` }).end();
  // The site says the rest only when these are there.
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  expect(answer.headers["content-type"]).toBe("text/event-stream");
  finish();
  let text = "";
  for await (const piece of answer) text += String(piece);
  expect(text).toBe("data: 1\n\n");
  await eventually(() => isSettled(place.limiter), "the place is free");
});

it("passes the headers of an upload on before there is a byte of its body", async () => {
  await using site = await startOrigin((incoming, response) => {
    incoming.resume().once("end", () => response.end("thanks"));
  });
  await using place = await startProxy(limits);
  const head = `POST ${site.url}/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`;
  const client = await rawConnection(place.port, head);
  await site.until(1);
  client.write("1\r\na\r\n0\r\n\r\n");
  const [answer] = (await once(client, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
  client.destroy();
});

it("breaks an answer off, with its status told, when the site is silent behind its headers", async () => {
  await using site = await startOrigin((_request, response) => response.writeHead(203).flushHeaders());
  await using place = await startProxy(limits, { timeoutMs: 200 });
  const answer = await raw(place.port, `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\n\r\n`, 5_000);
  expect(answer).toMatch(/^HTTP\/1\.1 203 [\s\S]*\r\n\r\n$/);
  await eventually(() => isSettled(place.limiter), "the place is free");
});

it("passes the bytes of headers on as they are, both ways, whatever they stand for", async () => {
  const bytes = Buffer.from([0x67, 0xf6, 0xc3, 0xb6, 0xff]).toString("latin1");
  await using site = await startOrigin((incoming, response) => {
    response.writeHead(200, { "x-back": incoming.headers["x-there"] });
    incoming.resume().once("end", () => response.end(Buffer.from("thanks")));
  });
  await using place = await startProxy(limits);
  const head = `POST ${site.url}/ HTTP/1.1\r\nHost: x\r\nX-There: ${bytes}\r\nContent-Length: 1\r\nConnection: close\r\n\r\na`;
  const answer = await raw(place.port, head);
  expect(site.seen[0].headers["x-there"]).toBe(bytes);
  expect(/^x-back: (.*)\r$/m.exec(answer)?.[1]).toBe(bytes);
});
