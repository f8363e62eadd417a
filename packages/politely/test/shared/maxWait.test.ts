import { expect, it } from "vitest";
import { Fleet } from "./fleet.js";

it("starts everybody who can start in time, and refuses the others, however many wait together", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ rate: "1/4s" });
  const ends: (number | string)[] = [];
  for (let index = 0; index < 5; index++) {
    limiter.acquire("x.org", { maxWait: "10s" }).then(
      () => (ends[index] = Math.round(fleet.clock.now() / 1000)),
      (error: { code: string }) => (ends[index] = error.code),
    );
  }
  await fleet.clock.advance(20_000);
  expect(ends).toEqual([0, 4, 8, "POLITELY_DEADLINE", "POLITELY_DEADLINE"]);
});

it("grants what need not wait with a maxWait of 0, refuses the rest at once, and does not count the way to the store", async () => {
  const fleet = new Fleet({ roundTripMs: 40 });
  const [one, other] = [fleet.add({ rate: "1/4s" }), fleet.add({ rate: "1/4s" })];
  expect(await fleet.now(one.acquire("x.org", { maxWait: 0 }))).toMatchObject({ key: "x.org" });
  const refused = await fleet.now(other.acquire("x.org", { maxWait: "0s" }).catch((error: unknown) => error));
  expect(refused).toMatchObject({ code: "POLITELY_DEADLINE", reason: expect.stringContaining("rate 1/4s") as string });
  expect((refused as { waitMs: number }).waitMs).toBeGreaterThan(3_000);
  const books = { asked: 1, granted: 0, refused: 1, waiting: 0 };
  expect(await fleet.now(other.stats("x.org"))).toMatchObject(books);
  expect(await fleet.now(one.acquire("y.org", { maxWait: 0, signal: AbortSignal.abort("no") }).catch(String))).toBe(
    "no",
  );
});

it("rejects a maxWait that is none, also one that begins with 0", async () => {
  const limiter = new Fleet().add({ rate: "1/s" });
  for (const maxWait of ["0 apples", "0"]) {
    await expect(limiter.acquire("x.org", { maxWait: maxWait as "0s" })).rejects.toThrow(/maxWait/);
  }
});
