import { request } from "node:http";
import { expect, it } from "vitest";
import { isLoopback, tokenIn } from "../../src/serve/api/guard.js";
import { bearer, Started } from "./started.js";

/** Sends headers that `fetch` would not: Host and Origin. */
function send(started: Started, path: string, headers: Record<string, string>, method = "GET"): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request({ port: started.port, host: "127.0.0.1", path, method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    call.once("error", reject);
    call.end(method === "POST" ? '{"domain":"x.org"}' : undefined);
  });
}

it("answers only under its address, localhost and the names it was given", async () => {
  await using started = await Started.with({ allowedHosts: ["Pace.internal"] });
  const { port } = started;
  const statuses: Record<string, number> = {};
  for (const host of [
    `127.0.0.1:${port}`,
    "127.0.0.1",
    `LOCALHOST:${port}`,
    "pace.internal:80",
    "evil.example",
    `evil.example:${port}`,
    "127.0.0.1.evil.example",
    "127.0.0.2",
    "localhost.evil.example",
    "localhost:80:80",
  ]) {
    statuses[host.replace(String(port), "PORT")] = await send(started, "/healthz", { host });
  }
  expect(statuses).toEqual({
    "127.0.0.1:PORT": 200,
    "127.0.0.1": 200,
    "LOCALHOST:PORT": 200,
    "pace.internal:80": 200,
    "evil.example": 421,
    "evil.example:PORT": 421,
    "127.0.0.1.evil.example": 421,
    "127.0.0.2": 421,
    "localhost.evil.example": 421,
    "localhost:80:80": 421,
  });
});

it("refuses what a page of another site sends, and takes what its own sends", async () => {
  await using started = await Started.with();
  const host = `localhost:${started.port}`;
  const json = { host, "content-type": "application/json" };
  const statuses: Record<string, number> = {};
  for (const origin of [
    `http://${host}`,
    "http://localhost",
    "https://evil.example",
    "null",
    `http://${host}.evil`,
    "",
  ]) {
    const name = origin.replace(String(started.port), "PORT");
    statuses[name] = await send(started, "/v1/check", { ...json, origin }, "POST");
  }
  expect(statuses).toEqual({
    "http://localhost:PORT": 200,
    "http://localhost": 403,
    "https://evil.example": 403,
    null: 403,
    "http://localhost:PORT.evil": 403,
    "": 403,
  });
  expect(await send(started, "/healthz", { host, origin: "https://evil.example" })).toBe(200);
  // What a form can send without asking is not taken.
  expect(await send(started, "/v1/check", { host, "content-type": "text/plain" }, "POST")).toBe(415);
});

it("wants the token for everything but the page and the health, however the path is written", async () => {
  const token = "a-token-of-some-length";
  await using started = await Started.with({
    token,
    addPage: (app) => void app.get("/", (_request, reply) => reply.type("text/html").send("<p>page")),
  });
  const paths = ["/v1/stats", "/%76%31/stats", "/v1/st%61ts", "/v1/stats?x=/healthz", "/v1/openapi.json", "/v1/events"];
  for (const path of paths) expect([path, (await started.get(path)).status]).toEqual([path, 401]);
  expect((await started.get("/healthz")).status).toBe(200);
  expect((await fetch(`${started.url}/`)).status).toBe(200);
  for (const sent of [token, `${token} `]) {
    expect((await started.get("/v1/stats", { headers: bearer(sent) })).status).toBe(200);
  }
  for (const sent of ["", "x", `${token}x`, token.slice(1), token.toUpperCase(), "a".repeat(10_000)]) {
    const { status, headers } = await started.get("/v1/stats", { headers: bearer(sent) });
    expect([status, headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="politely"']);
  }
  const basic = { authorization: `Basic ${Buffer.from(`x:${token}`).toString("base64")}` };
  expect((await started.get("/v1/stats", { headers: basic })).status).toBe(401);
  // With a token, changes are allowed.
  expect((await started.post("/v1/pause", {}, { headers: bearer(token) })).status).toBe(204);
  expect((await started.post("/v1/resume", {})).status).toBe(401);
});

it("reads a header full of spaces as quickly as a short one", () => {
  const took = (authorization: string): number => {
    const beganMs = performance.now();
    for (let round = 0; round < 20; round++) tokenIn(authorization);
    return performance.now() - beganMs;
  };
  // Steps in the square of the length would be 128 million for each: seconds in place of a few milliseconds.
  for (const header of [
    `Bearer x${" ".repeat(16_000)}x`,
    `Bearer ${" ".repeat(16_000)}`,
    `Bearer ${" x".repeat(8_000)}`,
  ]) {
    expect(took(header)).toBeLessThan(500);
  }
  expect(tokenIn("bearer  some-token ")).toBe("some-token");
  expect([tokenIn("Bearer a b"), tokenIn("Bearer "), tokenIn("Basic x"), tokenIn(undefined)]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

it("knows which addresses only this machine can reach", () => {
  const local = ["127.0.0.1", "127.8.9.1", "::1", "localhost", "LOCALHOST"];
  const open = ["0.0.0.0", "::", "10.0.0.1", "192.168.1.1", "127.evil.example", "localhost.example", "128.0.0.1", ""];
  expect([local.filter(isLoopback), open.filter(isLoopback)]).toEqual([local, []]);
});
