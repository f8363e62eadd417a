import { statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { expect, it } from "vitest";
import { addServe } from "../../src/commands/serve.js";
import { main } from "../../src/main.js";
import { Place } from "../get/place.js";
import { fakeIo } from "../view/fakeIo.js";
import { post, startServe } from "./serveProcess.js";
import { until } from "./started.js";

const policy = JSON.stringify({ hosts: { "one.org": { concurrency: 1 }, "slow.org": { rate: "1/h" } } });

it("says where it is and what applies in one line, serves, and says at the end what was done", async () => {
  using place = new Place();
  place.file("politely.json", policy);
  await using serve = await startServe(place.path, []);
  expect(serve.stderr()).toMatch(
    /^politely serve: API and page at http:\/\/127\.0\.0\.1:\d+, proxy at http:\/\/127\.0\.0\.1:\d+; limits of politely\.json; state in memory\n$/,
  );
  await post(serve.url, "/v1/acquire", { domain: "slow.org" });
  await post(serve.url, "/v1/acquire", { domain: "slow.org", maxWaitMs: 5 });
  expect(await (await fetch(`${serve.url}/metrics`)).text()).toContain("politely_");
  expect((await fetch(`${serve.url}/v1/hosts?limit=1`)).status).toBe(200);
  expect((await fetch(`${serve.url}/v1/openapi.json`)).status).toBe(200);
  serve.child.kill("SIGINT");
  // Two that come at once would be one.
  await expect.poll(async () => (await fetch(`${serve.url}/healthz`)).status).toBe(503);
  serve.child.kill("SIGINT");
  expect(await serve.ended).toBe(0);
  expect(serve.stderr().split("\n")[1]).toMatch(
    /^politely serve: ended after .*; 1 granted, 0 of them waited, 1 refused/,
  );
});

it("lets permits come back when it is told to stop, and ends with the last of them", async () => {
  using place = new Place();
  place.file("politely.json", policy);
  await using serve = await startServe(place.path, ["--grace", "30s"]);
  const { body } = await post(serve.url, "/v1/acquire", { domain: "one.org" });
  const waiting = post(serve.url, "/v1/acquire", { domain: "one.org" });
  await until(() => serve.stderr() !== "", "it runs");
  await new Promise((resolve) => setTimeout(resolve, 200));
  serve.child.kill("SIGTERM");
  expect((await waiting).status).toBe(503);
  expect((await post(serve.url, "/v1/acquire", { domain: "x.org" })).status).toBe(503);
  expect((await post(serve.url, "/v1/renew", { permit: body.permit })).status).toBe(200);
  expect(serve.child.exitCode).toBeNull();
  expect((await post(serve.url, "/v1/release", { permit: body.permit })).status).toBe(204);
  expect(await serve.ended).toBe(0);
  expect(serve.stderr()).not.toContain("lapsed");
});

it("frees what does not come back within the grace", async () => {
  using place = new Place();
  await using serve = await startServe(place.path, ["--grace", "100ms", "--no-proxy"]);
  await post(serve.url, "/v1/acquire", { domain: "one.org" });
  serve.child.kill("SIGTERM");
  expect(await serve.ended).toBe(0);
  expect(serve.stderr()).toContain("1 permit lapsed");
});

it("listens on a Unix socket for this user only, alone if it is to, and replaces one that was left behind", async () => {
  using place = new Place();
  const path = join(place.path, "s.sock");
  for (let round = 0; round < 2; round++) {
    await using serve = await startServe(place.path, ["--no-port", "--socket", "s.sock"]);
    expect(serve.stderr()).toContain(`socket ${path}`);
    expect([serve.url, serve.proxyUrl]).toEqual(["", ""]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await health(path)).toBe(200);
    const second = await startServe(place.path, ["--no-port", "--no-proxy", "--socket", "s.sock"]);
    expect([await second.ended, second.stderr()]).toEqual([
      1,
      expect.stringContaining("another service answers there"),
    ]);
    expect(await health(path)).toBe(200);
    // Killed: the socket stays behind.
  }
  writeFileSync(join(place.path, "file"), "");
  const refused = await startServe(place.path, ["--no-port", "--no-proxy", "--socket", "file"]);
  expect([await refused.ended, refused.stderr()]).toEqual([2, expect.stringContaining("is a file already") as unknown]);
});

it("keeps the limits in a SQLite file over a kill, and says which, whatever option named it", async () => {
  using place = new Place();
  place.file("politely.json", policy);
  for (const [option, proceeds] of [["--data", true] as const, ["--share", false] as const]) {
    await using serve = await startServe(place.path, [option, "limits.db", "--no-proxy"]);
    expect(serve.stderr()).toContain("state in sqlite file limits.db");
    expect((await post(serve.url, "/v1/check", { domain: "slow.org" })).body.proceed).toBe(proceeds);
    if (proceeds) await post(serve.url, "/v1/acquire", { domain: "slow.org" });
    expect((await (await fetch(`${serve.url}/healthz`)).json()) as object).toMatchObject({ store: "sqlite" });
  }
});

it("refuses what cannot work with one line and exit code 2, and begins nothing", async () => {
  using place = new Place();
  place.file("bad.json", '{"default":{"rate":"0/s"}}');
  const cases: [args: string[], says: string][] = [
    [["--host", "0.0.0.0"], "callers must know a token"],
    [["--host", "::"], "callers must know a token"],
    [["--token", "short"], "8 to 512"],
    [["--port", "70000"], "--port takes a whole number from 0 to 65,535"],
    [["--no-port"], "--no-port needs --socket"],
    [["--data", "a", "--share", "b"], "exclude each other"],
    [["--share", "mysql://u:secret@h/db"], "--share takes redis://…, postgres://…, dynamodb:TABLE or a file"],
    [["--data", "redis://u:secret@h"], "--data takes a file"],
    [["--max-waiting", "0"], "--max-waiting takes"],
    [["--grace", "soon"], "--grace takes a duration"],
    [["--allow-host", "http://x"], "--allow-host takes a host name"],
    [["-p", "bad.json"], "bad.json:1:"],
    [["-p", "none.json"], "none.json"],
  ];
  for (const [args, says] of cases) {
    const io = fakeIo({ cwd: place.path });
    const code = await main(["serve", "--port", "0", "--no-proxy", ...args], io, [addServe]);
    const said = io.writes.join("");
    expect([args, code, said]).toEqual([args, 2, expect.stringContaining(says) as unknown]);
    expect(said.trim().split("\n")).toHaveLength(1);
    expect(said).not.toMatch(/secret|short/);
  }
});

it("says with exit code 1 that a port is taken or a store cannot be reached", async () => {
  using place = new Place();
  await using first = await startServe(place.path, ["--no-proxy"]);
  const { port } = new URL(first.url);
  const second = await startServe(place.path, ["--port", port, "--no-proxy"]);
  expect([await second.ended, second.stderr()]).toEqual([1, expect.stringContaining("it is in use") as unknown]);
  const third = await startServe(place.path, ["--share", "redis://u:secret@127.0.0.1:1", "--no-proxy"]);
  expect([await third.ended, third.stderr()]).toEqual([1, expect.stringContaining("cannot be used") as unknown]);
  expect(third.stderr()).not.toContain("secret");
});

it("serves other machines with a token, from the environment or the command line, and never writes it", async () => {
  using place = new Place();
  const token = "a-token-of-some-length";
  await using serve = await startServe(place.path, ["--host", "0.0.0.0", "--log-requests"], { POLITELY_TOKEN: token });
  const url = serve.url.replace("0.0.0.0", "127.0.0.1");
  expect((await fetch(`${url}/v1/stats`)).status).toBe(401);
  expect((await fetch(`${url}/v1/stats?a=b`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(422);
  await until(() => serve.stderr().split("\n").length > 3, "requests are in the log");
  expect(serve.stderr()).toMatch(/GET \/v1\/stats 401 \d+ ms\n.*GET \/v1\/stats\?a=b 422/);
  expect(serve.stderr()).not.toContain(token);
});

it("writes nothing of its callers without --log-requests", async () => {
  using place = new Place();
  await using serve = await startServe(place.path, ["--no-proxy"]);
  await fetch(`${serve.url}/v1/explain/private.example`, { headers: { "x-secret": "s3cret" } });
  await fetch(`${serve.url}/private/path`);
  await post(serve.url, "/v1/check", { domain: 5 });
  serve.child.kill("SIGTERM");
  await serve.ended;
  expect(serve.stderr()).not.toMatch(/private|s3cret/);
  expect(serve.stderr().trim().split("\n")).toHaveLength(2);
});

function health(socketPath: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path: "/healthz", agent: false, headers: { host: "any.thing" } }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    call.once("error", reject);
    call.end();
  });
}
