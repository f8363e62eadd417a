import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { json } from "node:stream/consumers";
import { createServer as createTlsServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Place } from "../../get/place.js";
import { type Seen, startSite } from "../../get/site.js";
import { selfSigned } from "../proxy/origin.js";
import { post, startServe } from "../serveProcess.js";

const run = promisify(execFile);
const folder = fileURLToPath(new URL("../../../../../examples/clients/", import.meta.url));

const built = new Place();
/** How each client is started. */
const CLIENTS: Readonly<Record<string, readonly string[]>> = {
  shell: ["sh", "polite.sh"],
  Python: ["python3", "polite.py"],
  Ruby: ["ruby", "polite.rb"],
  PHP: ["php", "polite.php"],
  Go: [`${built.path}/polite-go`],
};

// Compiling takes a while, and is not what is looked at.
beforeAll(() => run("go", ["build", "-o", `${built.path}/polite-go`, "polite.go"], { cwd: folder }), 120_000);
afterAll(() => built[Symbol.dispose]());

/** Runs a client to its end, which is a good one, and gives the lines it writes. */
async function lines(
  name: string,
  service: string,
  urls: readonly string[],
  more: NodeJS.ProcessEnv = {},
): Promise<string[]> {
  const [program, ...args] = CLIENTS[name];
  const env = { ...process.env, POLITELY_URL: service, ...more };
  const { stdout } = await run(program, [...args, ...urls], { cwd: folder, env });
  return stdout.trim().split("\n");
}

/** The most arrivals within `spanMs` of each other. */
function most(seen: readonly Seen[], spanMs: number): number {
  return Math.max(...seen.map(({ atMs }, i) => seen.slice(i).filter((each) => each.atMs - atMs < spanMs).length));
}

/** Stands before a service, and lets every permit live for a tenth of a second, whatever was asked for. */
async function hurry(service: string): Promise<AsyncDisposable & { readonly url: string; readonly asked: unknown[] }> {
  const asked: unknown[] = [];
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { ttlMs, ...body } = (await json(request)) as Record<string, unknown>;
    const isAcquire = request.url === "/v1/acquire";
    if (isAcquire) asked.push(ttlMs);
    const answer = await post(service, request.url ?? "", isAcquire ? { ...body, ttlMs: 100 } : body);
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(answer.status === 204 ? undefined : JSON.stringify(answer.body));
  };
  const server = createServer((request, response) => void pass(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Stands before a service as `https://localhost`, with a certificate that nobody else knows. */
async function secured(service: string): Promise<{ readonly url: string; readonly cert: string; close(): void }> {
  const { key, cert } = selfSigned();
  const { hostname, port } = new URL(service);
  const server = createTlsServer({ key, cert }, (socket) => {
    const inner = connect({ host: hostname.replace(/[[\]]/g, ""), port: Number(port) });
    socket.on("error", () => inner.destroy());
    inner.on("error", () => socket.destroy());
    socket.pipe(inner).pipe(socket);
  }).listen(0, "localhost");
  await once(server, "listening");
  return { url: `https://localhost:${(server.address() as AddressInfo).port}`, cert, close: () => server.close() };
}

it("keeps five programs in five languages to one limit, and holds all of them when one hears a 429", async () => {
  using place = new Place();
  let refusedAtMs = 0;
  await using site = await startSite({
    answer(request, response) {
      if (request.url !== "/Ruby/2" || refusedAtMs > 0) return undefined;
      refusedAtMs = performance.now();
      response.writeHead(429, { "retry-after": "2" }).end();
      return true;
    },
  });
  place.file("politely.json", JSON.stringify({ hosts: { "127.0.0.1": { minDelay: 50, concurrency: 10 } } }));
  await using service = await startServe(place.path, ["--no-proxy"]);
  const outputs = await Promise.all(
    Object.keys(CLIENTS).map((name) =>
      lines(
        name,
        service.url,
        [0, 1, 2, 3, 4, 5].map((number) => `${site.origin}/${name}/${number}`),
      ),
    ),
  );
  expect(outputs.flat().sort()).toEqual(
    Object.keys(CLIENTS)
      .flatMap((name) =>
        [0, 1, 2, 3, 4, 5].map((n) => `${name === "Ruby" && n === 2 ? 429 : 200} ${site.origin}/${name}/${n}`),
      )
      .sort(),
  );
  // Each once. On the way to the site a request may catch up with the one before.
  expect(Math.max(...site.counts().values())).toBe(1);
  expect(site.seen).toHaveLength(30);
  expect(most(site.seen, 500)).toBeLessThanOrEqual(12);
  // The 429 was told with the release: until then, and on the way, some may have started.
  const held = site.seen.filter(({ atMs }) => atMs > refusedAtMs + 300 && atMs < refusedAtMs + 1_900);
  expect(held).toEqual([]);
  const stats: unknown = await (await fetch(`${service.url}/v1/stats/127.0.0.1`)).json();
  expect(stats).toMatchObject({ total_requests: 30, throttled_requests: 1 });
});

it.each(Object.keys(CLIENTS))(
  "goes on with the next URL in %s when a turn is refused, with 429, 503 or 422",
  async (name) => {
    using place = new Place();
    await using site = await startSite();
    const hosts = { "late.example": { minDelay: "1h", maxWait: 0 }, "full.example": { minDelay: "1h", maxQueue: 0 } };
    place.file("politely.json", JSON.stringify({ hosts }));
    await using service = await startServe(place.path, ["--no-proxy"]);
    const refused = ["http://late.example/", "http://full.example/", "http://1.2.3.256/"];
    // The first start is free.
    for (const url of refused.slice(0, 2)) await post(service.url, "/v1/acquire", { domain: url });
    const answers = await Promise.all(refused.map((domain) => post(service.url, "/v1/acquire", { domain })));
    expect(answers.map(({ status }) => status)).toEqual([429, 503, 422]);
    const written = await lines(name, service.url, [...refused, `${site.origin}/last`]);
    expect(written.map((line) => line.split(" ", 2).join(" "))).toEqual([
      ...refused.map((url) => `failed ${url}`),
      `200 ${site.origin}/last`,
    ]);
  },
);

it.each(Object.keys(CLIENTS))(
  "gives the page in %s though its permit has lapsed meanwhile, and asks for a permit of ten minutes",
  async (name) => {
    using place = new Place();
    await using site = await startSite({ delayMs: 500 });
    place.file("politely.json", JSON.stringify({ hosts: { "127.0.0.1": { concurrency: 1 } } }));
    await using service = await startServe(place.path, ["--no-proxy"]);
    await using hurried = await hurry(service.url);
    expect(await lines(name, hurried.url, [`${site.origin}/slow`])).toEqual([`200 ${site.origin}/slow`]);
    expect(hurried.asked).toEqual([600_000]);
    expect(await (await fetch(`${service.url}/metrics`)).text()).toContain("politely_service_lapsed_permits_total 1\n");
  },
);

it("asks each page once, and gives its permit back whatever the site answers or breaks off", async () => {
  using place = new Place();
  await using site = await startSite({
    answer({ url = "" }, response) {
      // On the wire, é is one byte, which is no UTF-8.
      if (url.endsWith("/named")) response.setHeader("content-disposition", 'attachment; filename="caf\u00e9.pdf"');
      if (url.endsWith("/broken")) response.destroy();
      if (url.endsWith("/refused")) response.setHeader("retry-after", ["1", "1"]).writeHead(429).end();
      return response.destroyed || response.headersSent;
    },
  });
  place.file(
    "politely.json",
    JSON.stringify({ hosts: { "127.0.0.1": { concurrency: 50, cooldown: 0, backoff: "none" } } }),
  );
  await using service = await startServe(place.path, ["--no-proxy"]);
  const names = Object.keys(CLIENTS);
  const pages = ["named", "broken", "refused"];
  const urlsOf = (name: string): string[] => pages.map((page) => `${site.origin}/${name}/${page}`);
  const outputs = await Promise.all(names.map((name) => lines(name, service.url, urlsOf(name))));
  const told = outputs.map((output) => output.map((line) => line.split(" ", 1)[0]));
  expect(told).toEqual(names.map(() => ["200", "failed", "429"]));
  expect(site.seen.map(({ path }) => site.origin + path).sort()).toEqual(names.flatMap(urlsOf).sort());
  expect(await (await fetch(`${service.url}/healthz`)).json()).toMatchObject({ permits: 0 });
});

it("asks a service at an IPv6 address, and one behind TLS, with its token", async () => {
  using place = new Place();
  await using site = await startSite();
  const token = "a-token-of-its-own";
  await using service = await startServe(place.path, ["--no-proxy", "--host", "::1"], { POLITELY_TOKEN: token });
  const front = await secured(service.url);
  const trusted = place.file("cert.pem", front.cert);
  const env = { POLITELY_TOKEN: token, SSL_CERT_FILE: trusted, CURL_CA_BUNDLE: trusted };
  const page = `${site.origin}/page`;
  try {
    for (const url of [service.url, front.url]) {
      const outputs = await Promise.all(Object.keys(CLIENTS).map((name) => lines(name, url, [page], env)));
      expect(outputs).toEqual(outputs.map(() => [`200 ${page}`]));
    }
  } finally {
    front.close();
  }
});

it("shows its token to nobody who lists the machine's programs while it waits", async () => {
  using place = new Place();
  await using site = await startSite();
  const token = `token-${process.pid}-${Date.now()}`;
  place.file("politely.json", JSON.stringify({ hosts: { "127.0.0.1": { concurrency: 1 } } }));
  await using service = await startServe(place.path, ["--no-proxy"], { POLITELY_TOKEN: token });
  const call = async (path: string, body: unknown): Promise<unknown> => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
    const answer = await fetch(service.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return answer.status === 204 ? undefined : answer.json();
  };
  const { permit } = (await call("/v1/acquire", { domain: site.origin })) as { readonly permit: string };
  const names = Object.keys(CLIENTS);
  const written = names.map((name) => lines(name, service.url, [`${site.origin}/a`], { POLITELY_TOKEN: token }));
  const waiting = async (): Promise<unknown> =>
    ((await (await fetch(`${service.url}/healthz`)).json()) as { readonly waiting: number }).waiting;
  await expect.poll(waiting, { timeout: 20_000 }).toBe(names.length);
  const { stdout } = await run("ps", ["-A", "-ww", "-o", "args"], { maxBuffer: 2 ** 24 });
  expect(stdout).toContain("polite.rb");
  expect(stdout.split("\n").filter((line) => line.includes(token))).toEqual([]);
  await call("/v1/release", { permit });
  expect((await Promise.all(written)).flat()).toEqual(names.map(() => `200 ${site.origin}/a`));
});

it("asks for a URL in shell as it is written, with what means something in JSON and to curl", async () => {
  using place = new Place();
  await using site = await startSite();
  place.file("politely.json", JSON.stringify({ hosts: { "127.0.0.1": { concurrency: 1 } } }));
  await using service = await startServe(place.path, ["--no-proxy"]);
  const path = '/"},{"a":"b/{1,2}/[1-3]';
  expect(await lines("shell", service.url, [site.origin + path, `${site.origin}/a\\b`])).toEqual([
    `200 ${site.origin}${path}`,
    `200 ${site.origin}/a\\b`,
  ]);
  expect(site.seen.map((each) => each.path)).toEqual([path, "/a\\b"]);
  const stats: unknown = await (await fetch(`${service.url}/v1/stats/127.0.0.1`)).json();
  expect(stats).toMatchObject({ total_requests: 2 });
});
