import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import { startRedis } from "../../../politely/test/servers/redis.js";
import { Place } from "../get/place.js";
import { post, type ServeProcess, startServe } from "./serveProcess.js";

/** Asks for starts, one after the other, until the time is over. Each is released at once. Resolves to when each was granted, on one clock for all. */
async function askUntil({ url }: ServeProcess, domain: string, endMs: number): Promise<number[]> {
  const grantedMs: number[] = [];
  while (performance.now() < endMs) {
    const maxWaitMs = Math.max(0, endMs - performance.now());
    const { status, body } = await post(url, "/v1/acquire", { domain, maxWaitMs });
    if (status === 429) break;
    expect(status).toBe(200);
    grantedMs.push(performance.now());
    await post(url, "/v1/release", { permit: body.permit, outcome: "success" });
  }
  return grantedMs;
}

it("keeps one limit in two services on one Redis, judged by what both granted", async () => {
  await using redis = await startRedis();
  using place = new Place();
  const [paced, counted, single] = ["paced", "counted", "single"].map(
    (name) => `${name}-${crypto.randomUUID()}.example`,
  );
  const hosts = { [paced]: { rate: "10/s", burst: 1 }, [counted]: { window: "7/h" }, [single]: { concurrency: 1 } };
  place.file("politely.json", JSON.stringify({ hosts }));
  const args = ["--share", redis.url, "--no-proxy"];
  await using one = await startServe(place.path, args);
  await using other = await startServe(place.path, args);
  const both = [one, other];

  const beganMs = performance.now();
  const endMs = beganMs + 3_000;
  const lists = await Promise.all([...both, ...both].map((serve) => askUntil(serve, paced, endMs)));
  const all = lists.flat().sort((left, right) => left - right);
  // Ten a second and the first, whatever each of them had: and nearly all of what is allowed was used.
  expect(all.length, "a limit was broken").toBeLessThanOrEqual(1 + Math.ceil(((all.at(-1) ?? endMs) - beganMs) / 100));
  expect(all.length).toBeGreaterThan(15);
  expect([lists[0].length + lists[2].length > 0, lists[1].length + lists[3].length > 0]).toEqual([true, true]);

  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, turn) =>
      post(both[turn % 2].url, "/v1/acquire", { domain: counted, maxWaitMs: 2_000 }),
    ),
  );
  expect(answers.filter(({ status }) => status === 200).length, "a limit was broken").toBeLessThanOrEqual(7);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(7);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(13);

  // A place that is held in one is taken in the other, until it is given back.
  const { body } = await post(one.url, "/v1/acquire", { domain: single });
  expect((await post(other.url, "/v1/acquire", { domain: single, maxWaitMs: 500 })).status, "a limit was broken").toBe(
    429,
  );
  expect((await post(other.url, "/v1/release", { permit: body.permit })).body.code).toBe("unknown");
  expect((await post(one.url, "/v1/release", { permit: body.permit })).status).toBe(204);
  expect((await post(other.url, "/v1/acquire", { domain: single, maxWaitMs: 2_000 })).status).toBe(200);
});

it("shows hosts on the page of a service with a store, as they come", async () => {
  await using redis = await startRedis();
  using place = new Place();
  const domain = `${crypto.randomUUID()}.example`;
  place.file("politely.json", JSON.stringify({ hosts: { [domain]: { rate: "1/h" } } }));
  await using serve = await startServe(place.path, ["--share", redis.url, "--no-proxy"]);
  const leave = new AbortController();
  const feed = await fetch(`${serve.url}/v1/feed`, { signal: leave.signal });
  let text = "";
  const reading = (async () => {
    for await (const chunk of feed.body ?? []) text += Buffer.from(chunk).toString();
  })().catch(() => undefined);
  await post(serve.url, "/v1/acquire", { domain });
  const waiting = post(serve.url, "/v1/acquire", { domain, maxWaitMs: 7_200_000 }).catch(() => undefined);
  await expect.poll(() => text, { timeout: 10_000 }).toMatch(new RegExp(`"domain":"${domain}","state":"waiting"`));
  const { rows } = (await (await fetch(`${serve.url}/v1/hosts?q=${domain}`)).json()) as { rows: unknown[] };
  expect(rows).toMatchObject([{ domain, state: "waiting", waiting: 1, total: 1 }]);
  leave.abort();
  await reading;
  serve.child.kill("SIGKILL");
  await waiting;
});

it("ends the streams of readers when it is told to stop, and lets an open tunnel end within the grace", async () => {
  using place = new Place();
  const site = createServer((socket) => void socket.on("error", () => undefined).pipe(socket)).listen(0, "127.0.0.1");
  await once(site, "listening");
  const { port } = site.address() as { port: number };
  const args = ["--allow-private", "--connect-ports", String(port), "--grace", "30s"];
  await using serve = await startServe(place.path, args);
  const readers = await Promise.all(["/v1/feed", "/v1/events"].map((path) => fetch(serve.url + path)));
  const tunnel = connect({ host: "127.0.0.1", port: Number(new URL(serve.proxyUrl).port) });
  tunnel.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`);
  expect(await heard(tunnel)).toContain(" 200 ");

  serve.child.kill("SIGTERM");
  for (const reader of readers) expect(await reader.text()).toBeDefined();
  expect((await fetch(`${serve.url}/v1/feed`)).status).toBe(503);
  tunnel.write("still here");
  expect(await heard(tunnel)).toBe("still here");
  expect(serve.child.exitCode).toBeNull();
  tunnel.end();
  expect(await serve.ended).toBe(0);
  site.close();
});

async function heard(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, "data")) as [Buffer];
  return chunk.toString();
}
