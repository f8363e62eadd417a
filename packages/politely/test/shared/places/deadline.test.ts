import { expect, it } from "vitest";
import { Fleet } from "../fleet.js";
import { learn } from "./learn.js";

it("refuses nobody at once who could start in time when an answer comes early: a gap of headers, counted from the answer", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ countFrom: "answer", minDelay: "1s" });
  const left = { status: 200, headers: { "x-ratelimit-remaining": "300", "x-ratelimit-reset": "900" } };
  await learn(fleet, limiter, 30_000);
  // An answer takes 30 s. It says that 300 are left for 900 s: one each 3 s.
  const first = await fleet.now(limiter.acquire("x.org"));
  await fleet.clock.advance(30_000);
  await fleet.now(first.release(left));
  await fleet.clock.advance(5_000);
  const second = await fleet.now(limiter.acquire("x.org"));
  let said: unknown = "waiting";
  limiter.acquire("x.org", { maxWait: "10s" }).then(
    () => (said = "started"),
    (error: { message: string }) => (said = error.message),
  );
  await fleet.clock.advance(1_000);
  await fleet.now(second.release("success"));
  await fleet.clock.advance(5_000);
  expect(said).toBe("started");
});

it("does not hold a host after the answer for as long as answers take", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ countFrom: "answer", minDelay: "1s" });
  const left = { status: 200, headers: { "x-ratelimit-remaining": "300", "x-ratelimit-reset": "900" } };
  await learn(fleet, limiter, 30_000);
  const first = await fleet.now(limiter.acquire("x.org"));
  await fleet.clock.advance(30_000);
  await fleet.now(first.release(left));
  await fleet.clock.advance(5_000);
  const second = await fleet.now(limiter.acquire("x.org"));
  const stop = new AbortController();
  limiter.acquire("x.org", { signal: stop.signal }).catch(() => undefined);
  await fleet.clock.advance(1_000);
  stop.abort();
  await fleet.now(second.release("success"));
  // A gap of 3 s after the answer is over, and nobody waits or is in flight.
  await fleet.clock.advance(5_000);
  const said = await fleet.now(limiter.acquire("x.org", { maxWait: "10s" }).then(() => "started", String));
  expect(said).toBe("started");
});
