import type { PolicyInput } from "politely";
import { expect, it } from "vitest";
import { startCommand, startGet } from "./child.js";
import { type NginxSite, startNginxSite } from "./nginxSite.js";
import { Place } from "./place.js";

/** What the site has said of itself, as a policy. */
function published({ address, perSecond }: NginxSite): PolicyInput {
  return { hosts: { [address]: { rate: `${perSecond}/s`, burst: 1 } } };
}

async function audit(place: Place, site: NginxSite, ...args: string[]) {
  place.file("published.json", JSON.stringify(published(site)));
  const given = ["audit", "-p", "published.json", "--host", site.address, site.accessLog, ...args];
  return startCommand(place.path, given).ended;
}

it("stays below the limit of nginx with a right policy, and nginx's own log says so", async () => {
  using place = new Place();
  const site = await startNginxSite(5);
  await using server = site.server;
  place.file("list.txt", site.pages(25).join("\n"));
  // Counted from the answer, since the way of one request is longer than that of the next.
  const limits = { minDelay: 200, countFrom: "answer" };
  place.file("politely.json", JSON.stringify({ hosts: { [site.address]: limits } }));
  const { code, stderr, stdout } = await startGet(place.path, ["list.txt", "-o", "out", "--json"]).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const log = await server.log();
  // robots.txt, which is missing, and the pages.
  expect(log.map(({ status }) => status)).toEqual([404, ...Array.from({ length: 25 }, () => 200)]);
  const summary = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as object;
  expect(summary).toMatchObject({ fetched: 25, hosts: [{ key: site.address, requests: 26, throttled: 0 }] });

  const kept = await audit(place, site);
  expect(kept).toMatchObject({ code: 0, stderr: "" });
  expect(kept.stdout).toMatch(/Kept to published\.json/);
  // What get wrote down itself says the same, to the microsecond.
  const own = await startCommand(place.path, ["audit", "-p", "politely.json", "out"]).ended;
  expect({ code: own.code, stderr: own.stderr }).toEqual({ code: 0, stderr: "" });
});

it("fetches every page though the policy is wrong, because it hears the 429s, and nginx's log shows what it did", async () => {
  using place = new Place();
  const site = await startNginxSite(2);
  await using server = site.server;
  place.file("list.txt", site.pages(10).join("\n"));
  place.file("politely.json", JSON.stringify({ hosts: { [site.address]: { rate: "100/s", burst: 20 } } }));
  const args = ["list.txt", "-o", "out", "--no-robots", "--json"];
  const { code, stderr, stdout } = await startGet(place.path, args).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const log = await server.log();
  const fetched = log.filter(({ status }) => status === 200).map(({ path }) => path);
  expect(new Set(fetched).size).toBe(10);
  expect(fetched).toHaveLength(10);
  const refused = log.filter(({ status }) => status === 429).length;
  expect(refused).toBeGreaterThan(5);
  const summary = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as object;
  expect(summary).toMatchObject({ hosts: [{ requests: log.length, throttled: refused }] });

  const broken = await audit(place, site, "--receipt", "receipt.json");
  expect(broken.code).toBe(1);
  expect(broken.stdout).toMatch(/NOT KEPT: \d+ starts within .*combined\.log:1 /s);
  expect(JSON.parse(place.read("receipt.json"))).toMatchObject({
    hosts: [{ host: site.address, requests: log.length }],
  });
  // It did stay away for as long as it was told to, though: that is heard a moment later on a busy machine.
  const own = await startCommand(place.path, ["audit", "-p", "politely.json", "--slack", "250ms", "out"]).ended;
  expect({ code: own.code, stdout: own.stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining("Kept") as string,
  });
});
