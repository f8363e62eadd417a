import { connect } from "node:net";
import { expect, it } from "vitest";
import { Place } from "../get/place.js";
import { post, startServe } from "./serveProcess.js";

it("counts those who wait in the proxy among those who wait", async () => {
  using place = new Place();
  place.file("politely.json", JSON.stringify({ hosts: { "slow.example": { rate: "1/h" } } }));
  await using serve = await startServe(place.path, []);
  await post(serve.url, "/v1/acquire", { domain: "slow.example" });
  const { hostname, port } = new URL(serve.proxyUrl);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on("error", () => undefined);
  socket.write("GET http://slow.example/ HTTP/1.1\r\nhost: slow.example\r\n\r\n");
  const waiting = async () => ((await (await fetch(`${serve.url}/healthz`)).json()) as { waiting: number }).waiting;
  await expect.poll(waiting).toBe(1);
  const metrics = await (await fetch(`${serve.url}/metrics`)).text();
  expect(metrics).toMatch(/^politely_service_waiting 1$/m);
  socket.destroy();
  await expect.poll(waiting).toBe(0);
});
