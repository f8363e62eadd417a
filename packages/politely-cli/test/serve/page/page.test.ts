import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../started.js";
import { type Look, Stage } from "./stage.js";

const policy = {
  default: { rate: "1/10s", concurrency: 4, cooldown: "30s" },
  hosts: { "fast.example": { rate: "50/s" } },
} as const;
let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open();
}, 60_000);
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

/** A service with hosts in every state. */
async function stageOfAll(options: Parameters<Stage["serve"]>[1] = {}) {
  const service = await stage.serve(policy, options);
  const { limiter } = service;
  for (const host of ["waiting.example", "fast.example"]) (await limiter.acquire(host)).release("success");
  for (let each = 0; each < 3; each++) void limiter.acquire("waiting.example").catch(() => undefined);
  (await limiter.acquire("cooling.example")).release({ status: 429, headers: { "retry-after": "600" } });
  limiter.pause("paused.example");
  return service;
}

const row = ({ page }: Look, name: string) =>
  page.getByRole("row").filter({ has: page.getByText(name, { exact: true }) });

describe("the list", () => {
  it("shows each host with its state in words, its rate, and why it waits", async () => {
    await using service = await stageOfAll();
    await using look = await stage.look(service.url);
    await row(look, "cooling.example").getByText("Cooling down", { exact: true }).waitFor();
    await row(look, "paused.example").getByText("Paused", { exact: true }).waitFor();
    await row(look, "fast.example").getByText("Flowing", { exact: true }).waitFor();
    const waiting = row(look, "waiting.example");
    await expect
      .poll(() => waiting.innerText(), { timeout: 5_000 })
      .toMatch(/Waiting[\s\S]*of 0\.1\/s[\s\S]*3[\s\S]*in \d+ s/);
    await expect.poll(() => row(look, "cooling.example").innerText(), { timeout: 5_000 }).toMatch(/in 9 min \d+ s/);
    expect(await look.page.getByRole("grid").getAttribute("aria-rowcount")).toBe("5");
    expect([look.problems, look.foreign]).toEqual([[], []]);
  });

  it("follows what happens without being loaded again, and counts down", async () => {
    await using service = await stageOfAll();
    await using look = await stage.look(service.url);
    await row(look, "fast.example").waitFor();
    (await service.limiter.acquire("later.example")).release("success");
    await row(look, "later.example").getByText("Flowing", { exact: true }).waitFor();
    const next = () => row(look, "cooling.example").locator(".nextStart").innerText();
    const before = await next();
    await expect.poll(next, { timeout: 5_000 }).not.toBe(before);
  });

  it("is searched, filtered and sorted", async () => {
    await using service = await stageOfAll();
    await using look = await stage.look(service.url);
    const { page } = look;
    const names = () => page.locator(".line .name").allInnerTexts();
    await row(look, "cooling.example").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("IN");
    await expect.poll(names).toEqual(["cooling.example", "waiting.example"]);
    await page.keyboard.press("Escape");
    await expect.poll(names).toHaveLength(4);
    await page.getByRole("button", { name: /^Paused/ }).click();
    await expect.poll(names).toEqual(["paused.example"]);
    await page.getByRole("button", { name: /^All/ }).click();
    await page.getByRole("button", { name: "Waiting", exact: true }).click();
    await expect.poll(async () => (await names())[0]).toBe("waiting.example");
    expect(await page.getByRole("columnheader", { name: "Waiting" }).getAttribute("aria-sort")).toBe("descending");
    await page.getByRole("button", { name: "Host" }).click();
    await expect.poll(names).toEqual(["cooling.example", "fast.example", "paused.example", "waiting.example"]);
  });
});

describe("one host", () => {
  it("is opened and closed by keys alone, and says what holds it", async () => {
    await using service = await stageOfAll();
    await using look = await stage.look(service.url);
    const { page } = look;
    await row(look, "cooling.example").waitFor();
    await page.getByRole("grid").focus();
    await page.keyboard.press("Home");
    const active = await page.getByRole("grid").getAttribute("aria-activedescendant");
    expect(await page.locator(`#${active}`).innerText()).toContain("cooling.example");
    await page.keyboard.press("Enter");
    const detail = page.getByRole("complementary", { name: "Host cooling.example" });
    await detail
      .getByText(/429, Retry-After 600 s/)
      .first()
      .waitFor();
    await detail.getByText("default", { exact: true }).waitFor();
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("cooling.example");
    await page.keyboard.press("Escape");
    await detail.waitFor({ state: "detached" });
    expect(await page.evaluate(() => document.activeElement?.getAttribute("role"))).toBe("grid");
  });

  it("is paused and resumed with the key p", async () => {
    await using service = await stageOfAll();
    await using look = await stage.look(service.url);
    const { page } = look;
    await row(look, "fast.example").click();
    await page.getByRole("complementary").waitFor();
    await page.keyboard.press("p");
    await row(look, "fast.example").getByText("Paused", { exact: true }).waitFor();
    expect(service.limiter.check("fast.example").proceed).toBe(false);
    await page.keyboard.press("p");
    await row(look, "fast.example").getByText("Paused", { exact: true }).waitFor({ state: "detached" });
    expect(service.limiter.check("fast.example").proceed).toBe(true);
  });

  it("says that everything is paused where one host cannot be resumed alone, and resumes all", async () => {
    await using service = await stageOfAll();
    await using look = await stage.look(service.url);
    const { page } = look;
    service.limiter.pause();
    await row(look, "fast.example").getByText("Paused", { exact: true }).waitFor();
    // From the list: the host is opened, where it is said why.
    await page.locator(".hosts").focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("p");
    await page.getByRole("complementary").getByText("no host can be resumed alone").waitFor();
    expect(await page.getByRole("button", { name: "Resume p" }).count()).toBe(0);
    await page.getByRole("button", { name: "Resume all hosts" }).click();
    await row(look, "fast.example").getByText("Paused", { exact: true }).waitFor({ state: "detached" });
    expect(service.limiter.check("fast.example").proceed).toBe(true);
    await page.getByRole("button", { name: "Resume all hosts" }).waitFor({ state: "detached" });
  });

  it("gets other limits while the service runs, and the file's again", async () => {
    await using service = await stageOfAll();
    await using look = await stage.look(service.url);
    const { page } = look;
    await row(look, "waiting.example").click();
    const form = page.getByRole("form", { name: "Limits of waiting.example" });
    const rate = form.getByLabel("Rate");
    await expect.poll(() => rate.inputValue()).toBe("1/10s");
    await rate.fill("nonsense");
    await form.getByRole("button", { name: "Save limits" }).click();
    await form.getByText(/rate/).waitFor();
    await rate.fill("20/s");
    await form.getByRole("button", { name: "Save limits" }).click();
    await form.getByText("Saved. It applies from now on.").waitFor();
    await until(
      () => service.limiter.stats("waiting.example")?.waiting === 0,
      "those who wait start under the new limit",
    );
    expect(service.limiter.explain("waiting.example").origin).toBe("hosts.waiting.example");
    await form.getByRole("button", { name: "Put the file's back" }).click();
    await expect.poll(() => rate.inputValue()).toBe("1/10s");
    expect(service.limiter.explain("waiting.example").origin).toBe("default");
  });

  it("cannot be changed where the service does not allow it", async () => {
    await using service = await stageOfAll({ isWritable: false });
    await using look = await stage.look(service.url);
    await row(look, "fast.example").click();
    await look.page.getByText(/--allow-writes/).waitFor();
    expect(await look.page.getByRole("button", { name: /Pause/ }).filter({ hasNotText: /\d/ }).count()).toBe(0);
    expect(await look.page.getByRole("form").count()).toBe(0);
  });
});

describe("the connection", () => {
  it("asks for the token, says when it is wrong, and keeps it for the tab", async () => {
    await using service = await stageOfAll({ token: "right-token" });
    await using look = await stage.look(service.url);
    const { page } = look;
    await page.getByLabel("Token", { exact: true }).last().fill("wrong-token");
    await page.keyboard.press("Enter");
    await page.getByText("That is not the token.").waitFor();
    await page.getByLabel("Token", { exact: true }).last().fill("right-token");
    await page.keyboard.press("Enter");
    await row(look, "fast.example").waitFor();
    expect(await page.getByText("That is not the token.").count()).toBe(0);
    await page.reload();
    await row(look, "fast.example").waitFor();
    expect(await page.evaluate(() => JSON.stringify(Object.entries(localStorage)) + document.cookie)).not.toContain(
      "right-token",
    );
    await row(look, "fast.example").click();
    await page
      .getByRole("button", { name: /^Pause/ })
      .last()
      .click();
    await row(look, "fast.example").getByText("Paused", { exact: true }).waitFor();
  });

  it("asks again after a token that no header can carry", async () => {
    await using service = await stageOfAll({ token: "right-token" });
    await using look = await stage.look(service.url);
    const { page } = look;
    // As a word processor writes it.
    await page.getByLabel("Token", { exact: true }).last().fill("“right-token”");
    await page.keyboard.press("Enter");
    await page.getByText("That is not the token.").waitFor({ timeout: 10_000 });
    await page.getByLabel("Token", { exact: true }).last().fill("right-token");
    await page.keyboard.press("Enter");
    await row(look, "fast.example").waitFor();
    expect(await page.getByText("That is not the token.").count()).toBe(0);
  });

  it("says that it is lost, and comes back by itself", async () => {
    await using service = await stageOfAll();
    await using look = await stage.look(service.url);
    const { page } = look;
    await page.getByText("Live", { exact: true }).waitFor();
    await page.context().setOffline(true);
    for (const socket of service.accepted) socket.destroy();
    await page.getByText(/Connection lost/).waitFor();
    await page.getByText(/Trying again in [2-9] s/).waitFor({ timeout: 15_000 });
    await page.context().setOffline(false);
    await page.getByText("Live", { exact: true }).waitFor({ timeout: 15_000 });
    (await service.limiter.acquire("after.example")).release("success");
    await row(look, "after.example").waitFor();
    expect(await look.page.getByText(/Connection lost/).count()).toBe(0);
  });

  it("tells what to do while there is no host, and the line it gives works", async () => {
    await using service = await stage.serve(policy);
    await using look = await stage.look(service.url);
    const line = await look.page.locator("pre").innerText();
    expect(line).toContain(`curl ${service.url}/v1/acquire`);
    expect((await service.post("/v1/acquire", JSON.parse(/'(.*)'/.exec(line)?.[1] ?? ""))).status).toBe(200);
    await row(look, "example.com").waitFor();
    expect([look.problems, look.foreign]).toEqual([[], []]);
  });
});

describe("the page", () => {
  it("is served with a policy that allows nothing inline and nothing from elsewhere", async () => {
    await using service = await stage.serve(policy, { token: "right-token" });
    const answer = await fetch(`${service.url}/`);
    const html = await answer.text();
    expect(answer.headers.get("content-security-policy")).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'self'/,
    );
    expect(html).not.toMatch(/<style|style=|<script(?![^>]*src=)|https?:\/\//);
    const [, script] = /src="\.(\/assets\/[\w-]+\.js)"/.exec(html) ?? [];
    const asset = await fetch(service.url + script);
    expect([asset.status, asset.headers.get("cache-control")]).toEqual([200, "public, max-age=31536000, immutable"]);
    await asset.text();
    expect((await fetch(`${service.url}/assets/../../package.json`)).status).not.toBe(200);
  });

  it("keeps the theme that was chosen", async () => {
    await using service = await stageOfAll();
    await using look = await stage.look(service.url, { colorScheme: "light" });
    const { page } = look;
    const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await paper();
    await page.getByRole("button", { name: "Theme: auto" }).click();
    await page.getByRole("button", { name: "Theme: light" }).click();
    const dark = await paper();
    expect(dark).not.toBe(light);
    await page.reload();
    await page.getByRole("button", { name: "Theme: dark" }).waitFor();
    expect(await paper()).toBe(dark);
  });

  it("tells a screen reader of hosts that are held, and not of every change", async () => {
    await using service = await stageOfAll();
    await using look = await stage.look(service.url);
    await row(look, "fast.example").waitFor();
    service.limiter.pause("fast.example");
    for (let each = 0; each < 2; each++) (await service.limiter.acquire(`new-${each}.example`)).release("success");
    void service.limiter.acquire("new-1.example").catch(() => undefined);
    const said = look.page.getByRole("status").filter({ hasText: "fast.example: paused" });
    await said.waitFor({ state: "attached", timeout: 15_000 });
    expect(await said.textContent()).toBe("fast.example: paused");
  });
});
