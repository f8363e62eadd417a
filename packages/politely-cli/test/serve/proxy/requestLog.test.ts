import { expect, it } from "vitest";
import { startOrigin } from "./origin.js";
import { eventually, raw, rawConnection, startProxy } from "./place.js";

const limits = { hosts: { "127.0.0.1": { concurrency: 1 } } };

it("tells of requests that are refused, with the site where it can be read", async () => {
  await using place = await startProxy(limits, { token: "the-token", allowPrivate: false });
  const ask = (line: string, more = ""): Promise<string> =>
    raw(place.port, `${line} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`);
  await ask("GET http://a.example/secret");
  await ask("GET /https://b.example/secret?x=1");
  await ask("CONNECT c.example:443");
  await ask("CONNECT c.example:22", "Proxy-Authorization: Bearer the-token\r\n");
  await ask("CONNECT 10.0.0.1:443", "Proxy-Authorization: Bearer the-token\r\n");
  await ask("CONNECT nonsense", "Proxy-Authorization: Bearer the-token\r\n");
  expect(place.requests).toEqual([
    "GET http://a.example 407",
    "GET https://b.example 401",
    "CONNECT c.example:443 407",
    "CONNECT c.example:22 403",
    "CONNECT 10.0.0.1:443 403",
    "CONNECT ? 400",
  ]);
});

it("tells of a target that cannot be read without repeating it", async () => {
  await using place = await startProxy(limits);
  await raw(place.port, "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n");
  expect(place.requests).toEqual(["GET ? 404"]);
});

it("tells of a tunnel when it is open, and of clients that went before their answer with 499", async () => {
  await using site = await startOrigin();
  await using place = await startProxy(limits, { connectPorts: [site.port] });
  const connect = `CONNECT 127.0.0.1:${site.port} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const open = await rawConnection(place.port, connect);
  await eventually(() => place.requests.length === 1, "the tunnel is open");
  for (const text of [connect, `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\n\r\n`]) {
    const client = await rawConnection(place.port, text);
    await eventually(() => place.proxy.waitingCount === 1, "it waits");
    client.destroy();
    await eventually(() => place.proxy.waitingCount === 0, "it has gone");
  }
  await eventually(() => place.requests.length === 3, "all are told");
  const at = `127.0.0.1:${site.port}`;
  expect(place.requests).toEqual([`CONNECT ${at} 200`, `CONNECT ${at} 499`, `GET http://${at} 499`]);
  open.destroy();
});
