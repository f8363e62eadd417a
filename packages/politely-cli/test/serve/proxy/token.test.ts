import { expect, it } from "vitest";
import { startOrigin } from "./origin.js";
import { raw, startProxy } from "./place.js";

const limits = { hosts: { "127.0.0.1": { concurrency: 4 } } };
const token = "the-token-of-this-proxy";
const basic = `Basic ${Buffer.from(`politely:${token}`).toString("base64")}`;
const ours = [token, basic];

/** Sends headers through a proxy with a token, and gives what the site saw of them. */
async function seen(form: "proxy" | "gateway", headers: readonly string[]): Promise<readonly string[]> {
  await using site = await startOrigin();
  await using place = await startProxy(limits, { token });
  const filled = headers.map((line) => line.replace("GATEWAY", `127.0.0.1:${place.port}`).replace("SITE", site.url));
  const target = `${form === "gateway" ? "/" : ""}${site.url}/`;
  const head = [`GET ${target} HTTP/1.1`, `Host: 127.0.0.1:${place.port}`, ...filled, "Connection: close", "", ""];
  expect(await raw(place.port, head.join("\r\n"))).toMatch(/^HTTP\/1\.1 200 /);
  const [{ rawHeaders }] = site.seen;
  for (const line of rawHeaders) for (const secret of ours) expect(line).not.toContain(secret);
  return rawHeaders.map((line) => line.replace(site.url, "SITE"));
}

it("keeps the token back that a client of http_proxy sends as the site's Authorization too", async () => {
  const lines = await seen("proxy", [
    `Proxy-Authorization: ${basic}`,
    `Authorization: Bearer ${token}`,
    `Authorization: ${basic}`,
  ]);
  expect(lines).not.toContain("Authorization");
});

it.each([
  ["first", [`Authorization: ${basic}`, "Authorization: Bearer mine"]],
  ["second", ["Authorization: Bearer mine", `Authorization: ${basic}`]],
])("keeps the token back where it is the %s of two Authorization headers, and passes the other on", async (_, two) => {
  const lines = await seen("gateway", two);
  expect(lines.filter((_line, index) => lines[index - 1] === "Authorization")).toEqual(["Bearer mine"]);
});

it("passes the site's own Authorization on, beside the token", async () => {
  expect(await seen("proxy", [`Proxy-Authorization: ${basic}`, "Authorization: Bearer mine"])).toContain("Bearer mine");
  expect(await seen("gateway", [`Politely-Token: ${token}`, "Authorization: Bearer mine"])).toContain("Bearer mine");
});

it.each([
  ["proxy", `http://politely:${token}@GATEWAY/SITE/a`, "http://GATEWAY/SITE/a"],
  ["gateway", `http://politely:${token}@GATEWAY/SITE/a`, "SITE/a"],
  ["gateway", `http://GATEWAY/http://politely:${token}@site.example/a`, "http://site.example/a"],
  ["gateway", `http://politely:${token}@site.example/a@b`, "http://site.example/a@b"],
] as const)("strips user info from the Referer of a client of the %s: %s", async (form, referer, wanted) => {
  const lines = await seen(form, [
    form === "proxy" ? `Proxy-Authorization: ${basic}` : `Politely-Token: ${token}`,
    `Referer: ${referer}`,
  ]);
  const got = lines[lines.indexOf("Referer") + 1];
  expect(got.replace(/127\.0\.0\.1:\d+(?=\/SITE)/, "GATEWAY")).toBe(wanted);
});
