import { expect, it } from "vitest";
import { FakeTicker } from "../view/fakeIo.js";
import { Started, until } from "./started.js";

it("asks the store one question at a time, and once a second at most, however many look at its health", async () => {
  const ticker = new FakeTicker();
  const answers: ((isThere: boolean) => void)[] = [];
  const isThere = () => new Promise<boolean>((resolve) => answers.push(resolve));
  await using started = await Started.with({ ticker, isThere });
  const looked = [started.get("/healthz"), started.get("/healthz"), started.get("/healthz")];
  await until(() => answers.length > 0, "the store is asked");
  answers[0](true);
  expect((await Promise.all(looked)).map(({ status }) => status)).toEqual([200, 200, 200]);
  ticker.advance(999);
  expect((await started.get("/healthz")).status).toBe(200);
  expect(answers).toHaveLength(1);
  ticker.advance(2);
  const later = started.get("/healthz");
  await until(() => answers.length > 1, "the store is asked again");
  answers[1](false);
  expect((await later).status).toBe(503);
  expect((await started.get("/healthz")).body).toMatchObject({ code: "store" });
  expect(answers).toHaveLength(2);
});
