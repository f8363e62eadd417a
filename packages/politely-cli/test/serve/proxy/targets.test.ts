import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import { expect, it } from "vitest";
import { isOwnAddress, isPrivateAddress } from "../../../src/serve/proxy/addresses.js";
import { startOrigin } from "./origin.js";
import { curl, isSettled, raw, startProxy } from "./place.js";

const PRIVATE = `0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 168.63.129.16 169.254.169.254 172.16.0.1
  172.31.255.255 192.0.0.1 192.0.2.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
  255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe ::ffff:0:7f00:1 ::ffff:0:8.8.8.8 64:ff9b::7f00:1 64:ff9b::10.0.0.1 64:ff9b:1::1
  fe80::1 fe80::1%eth0 febf::1 fec0::1 fc00::1 fdff::1 ff02::1 2001:db8::1 2001::1 2002:7f00:1:: 100::1 0:0:0:0:0:0:0:1 localhost nonsense`;
const PUBLIC = `1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.1.1 172.15.255.255 172.32.0.0
  192.0.1.1 192.167.1.1 192.169.0.1 198.17.255.255 198.20.0.0 223.255.255.255 2606:4700::1111 2a00:1450:4001::1 ::ffff:8.8.8.8 64:ff9b::808:808`;

it.each(PRIVATE.split(/\s+/))("counts %s as private", (address) => {
  expect(isPrivateAddress(address)).toBe(true);
});

it.each(PUBLIC.split(/\s+/))("counts %s as public", (address) => {
  expect(isPrivateAddress(address)).toBe(false);
});

it("knows the addresses of this machine, in every way of writing them", () => {
  const own = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? []);
  const written = [...own, "127.0.0.1", "127.9.9.9", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1"];
  expect(written.filter((address) => !isOwnAddress(address))).toEqual([]);
  expect(isOwnAddress("192.0.2.1")).toBe(false);
  expect(isOwnAddress("::ffff:192.0.2.1")).toBe(false);
});

const WAYS_TO_LOOPBACK = [
  "127.0.0.1",
  "127.1",
  "2130706433",
  "0x7f000001",
  "0x7f.1",
  "0177.0.0.1",
  "%31%32%37.0.0.1",
  "127.0.0.1.",
  "0.0.0.0",
  "0",
  "[::1]",
  "[::]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[64:ff9b::7f00:1]",
  "localhost",
  "LOCALHOST",
];

it.each(WAYS_TO_LOOPBACK)("refuses %s with 403, as http_proxy and as gateway, and nothing is asked", async (host) => {
  await using site = await startOrigin();
  await using place = await startProxy({}, { allowPrivate: false });
  const url = `http://${host}:${site.port}/`;
  for (const [target, name] of [
    [url, "x"],
    [`/${url}`, "localhost"],
  ]) {
    const answer = await raw(place.port, `GET ${target} HTTP/1.1\r\nHost: ${name}\r\n\r\n`, 5_000);
    expect(answer).toMatch(/^HTTP\/1\.1 403 [\s\S]*error=destination_ip_prohibited[\s\S]*--allow-private/);
  }
  expect(site.seen).toHaveLength(0);
  expect(isSettled(place.limiter)).toBe(true);
});

it("refuses tunnels to private addresses, by number and by name, and to other ports than 443", async () => {
  await using site = await startOrigin();
  await using place = await startProxy({}, { allowPrivate: false, connectPorts: [443, site.port] });
  for (const host of ["127.0.0.1", "[::1]", "localhost", "0x7f000001", "169.254.169.254", "10.0.0.1"]) {
    const answer = await raw(place.port, `CONNECT ${host}:${site.port} HTTP/1.1\r\nHost: x\r\n\r\n`, 5_000);
    expect(`${host} ${answer}`).toMatch(/ HTTP\/1\.1 403 [\s\S]*destination_ip_prohibited/);
  }
  const other = await raw(place.port, "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(other).toMatch(/^HTTP\/1\.1 403 [\s\S]*got 22[\s\S]*--connect-ports/);
  expect(site.connectionCount).toBe(0);
});

it("refuses a private address at once, though its host is paused, and takes no turn for it", async () => {
  await using place = await startProxy({ hosts: { "127.0.0.1": { rate: "1/s" } } }, { allowPrivate: false });
  place.limiter.pause("127.0.0.1");
  for (const target of ["http://127.0.0.1:9/", "/http://127.0.0.1:9/"]) {
    const answer = await raw(place.port, `GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 403 [\s\S]*destination_ip_prohibited/);
  }
  expect(place.limiter.stats("127.0.0.1")?.asked ?? 0).toBe(0);
  expect(place.requests).toEqual(["GET http://127.0.0.1:9 403", "GET http://127.0.0.1:9 403"]);
});

it("gives back what a refused name took, since the site has seen nothing", async () => {
  // The name is what is refused, when its addresses are known: a turn was taken by then.
  expect((await lookup("localhost", { all: true })).length).toBeGreaterThan(0);
  await using place = await startProxy({ hosts: { localhost: { window: "5/h" } } }, { allowPrivate: false });
  expect(await raw(place.port, "GET http://localhost:9/ HTTP/1.1\r\nHost: x\r\n\r\n")).toMatch(/^HTTP\/1\.1 403 /);
  expect(place.limiter.stats("localhost")?.window).toMatchObject({ remaining: 5 });
});

it("never reaches its own ports, even where private targets are allowed", async () => {
  await using site = await startOrigin();
  await using place = await startProxy({}, { ownPorts: () => [site.port], connectPorts: [site.port] });
  for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.8.8.8", "0.0.0.0"]) {
    for (const port of [place.port, site.port]) {
      const get = `GET http://${host}:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`;
      expect(await raw(place.port, get, 5_000)).toMatch(/^HTTP\/1\.1 403 [\s\S]*its own ports are never reached/);
    }
  }
  const tunnel = await raw(place.port, `CONNECT 127.0.0.1:${site.port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  expect(tunnel).toMatch(/^HTTP\/1\.1 403 /);
  expect(site.connectionCount).toBe(0);
});

it.each([
  "ftp://127.0.0.1/",
  "http://",
  "http:///x",
  "http://user:secret@127.0.0.1/",
  "http://127.0.0.1\\@other.example/",
  "http://127.0.0.1:0/",
  "http://127.0.0.1:99999/",
  "http://127.0.0.1/a#b",
  "http://[::1/",
  "http://a b/",
  "*",
  "//127.0.0.1/",
  "127.0.0.1:80",
])("refuses the target %s with 400 or 404", async (target) => {
  await using place = await startProxy();
  const answer = await raw(place.port, `GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 40[04] [\s\S]*application\/problem\+json/);
  expect(isSettled(place.limiter)).toBe(true);
});

it("passes path and query on as they were written", async () => {
  await using site = await startOrigin();
  await using place = await startProxy();
  for (const path of ["/a/../b//c/./%7e?x=%2F&y=[1]|2", "/?", "/-/x", "/https://other.example/"]) {
    for (const [target, host] of [
      [`${site.url}${path}`, "x"],
      [`/${site.url}${path}`, "localhost"],
    ]) {
      await raw(place.port, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(site.seen.at(-1)?.path).toBe(path);
    }
  }
  await raw(place.port, `GET ${site.url}?q HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(site.seen.at(-1)?.path).toBe("/?q");
});

it("asks for its token where one is set, in the way of each form, and sends it to nobody", async () => {
  await using site = await startOrigin();
  await using place = await startProxy({}, { token: "s3cret:x" });
  const status = ["-o", "/dev/null", "-w", "%{http_code} "];
  const gateway = `${place.url}/${site.url}/`;
  const open = `http://127.0.0.1:${place.port}`;
  expect((await curl([...status, "-x", open, `${site.url}/`])).stdout).toBe("407 ");
  expect((await curl([...status, "-x", open, "-U", "politely:wrong", `${site.url}/`])).stdout).toBe("407 ");
  expect((await curl([...status, gateway])).stdout).toBe("401 ");
  expect((await curl([...status, "-H", "Politely-Token: s3cret", gateway])).stdout).toBe("401 ");
  expect(await raw(place.port, "CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: x\r\n\r\n")).toMatch(/^HTTP\/1\.1 407 /);
  expect(site.seen).toHaveLength(0);

  expect((await curl([...status, "-x", open, "-U", "politely:s3cret:x", `${site.url}/`])).stdout).toBe("200 ");
  const bearer = ["--proxy-header", "Proxy-Authorization: Bearer s3cret:x"];
  expect((await curl([...status, "-x", open, ...bearer, `${site.url}/`])).stdout).toBe("200 ");
  expect((await curl([...status, "-H", "Politely-Token: s3cret:x", gateway])).stdout).toBe("200 ");
  expect((await curl([...status, "-u", "politely:s3cret:x", gateway])).stdout).toBe("200 ");
  const both = ["-H", "Politely-Token: s3cret:x", "-H", "Authorization: Bearer of-the-site"];
  expect((await curl([...status, ...both, gateway])).stdout).toBe("200 ");
  expect(site.seen.map(({ headers }) => headers.authorization)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    "Bearer of-the-site",
  ]);
  const sent = JSON.stringify(site.seen.map(({ rawHeaders }) => rawHeaders));
  expect(sent).not.toContain("s3cret");
  expect(sent).not.toContain(Buffer.from("politely:s3cret:x").toString("base64"));
});

it("serves other machines only with a token", async () => {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const other = addresses.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
  // A machine without a network has no other address to come from.
  if (other === undefined) return;
  await using site = await startOrigin();
  await using closed = await startProxy({}, { host: "0.0.0.0" });
  await using open = await startProxy({}, { host: "0.0.0.0", token: "s3cret" });
  const status = ["-o", "/dev/null", "-w", "%{http_code}", `${site.url}/`];
  expect((await curl(["-x", `http://${other}:${closed.port}`, ...status])).stdout).toBe("403");
  expect((await curl(["-x", `http://a:s3cret@${other}:${open.port}`, ...status])).stdout).toBe("200");
});
