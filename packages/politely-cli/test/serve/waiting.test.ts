import { type Limiter, type Permit, politely } from "politely";
import { VirtualClock } from "politely/testing";
import { expect, it } from "vitest";
import { readAll, requestText, Started, until } from "./started.js";

const held = { default: { concurrency: 1 } } as const;
const acquire = requestText("/v1/acquire", { domain: "x.org" });

/** A service where the only place at x.org is taken, and its permit. */
async function taken(options: Parameters<typeof Started.with>[0] = {}): Promise<[Started, unknown]> {
  const started = await Started.with({ policy: held, ...options });
  return [started, (await started.post("/v1/acquire", { domain: "x.org" })).body.permit];
}

it("ends the wait of a caller that closes its connection", async () => {
  const [service] = await taken();
  await using started = service;
  const socket = await started.connect();
  socket.write(acquire);
  await until(() => started.limiter.stats("x.org")?.waiting === 1, "one waits");
  socket.destroy();
  await until(() => started.limiter.stats("x.org")?.waiting === 0, "nobody waits");
  expect(started.limiter.stats("x.org")).toMatchObject({ asked: 2, granted: 1, cancelled: 1 });
  expect(started.service.callers.size).toBe(0);
});

it("ends the later waits of a connection over which others were answered before", async () => {
  const [service] = await taken();
  await using started = service;
  const socket = await started.connect();
  let answers = 0;
  socket.on("data", () => {
    answers += 1;
  });
  for (const count of [1, 2]) {
    socket.write(requestText("/v1/acquire", { domain: `free${count}.org` }));
    await until(() => answers === count, "it is answered");
  }
  socket.write(acquire);
  await until(() => started.limiter.stats("x.org")?.waiting === 1, "one waits");
  socket.destroy();
  await until(() => started.limiter.stats("x.org")?.waiting === 0, "nobody waits");
  // Those that were answered belong to their caller.
  expect(started.service.permits.size).toBe(3);
});

it("takes a connection that is closed on one side for a caller that has gone", async () => {
  const [service] = await taken();
  await using started = service;
  const socket = await started.connect();
  socket.write(acquire);
  await until(() => started.service.callers.size === 1, "one waits");
  socket.end();
  await until(() => started.service.callers.size === 0, "nobody waits");
  expect(started.limiter.stats("x.org")).toMatchObject({ cancelled: 1, waiting: 0 });
  socket.destroy();
});

it("ends the waits of all who stand in line on one connection when it closes", async () => {
  const [service, permit] = await taken();
  await using started = service;
  const socket = await started.connect();
  socket.write(acquire.repeat(20));
  await until(() => started.service.callers.size === 20, "twenty wait");
  // The second in line may be granted although the answer of the first is not out: it is for nobody then.
  socket.destroy();
  await started.post("/v1/release", { permit });
  await until(() => started.service.callers.size === 0, "nobody waits");
  await until(() => started.service.permits.size === 0, "nobody holds");
  expect(started.limiter.stats("x.org")).toMatchObject({ inFlight: 0, waiting: 0 });
});

it("gives back unused what is granted in the instant in which the connection closes", async () => {
  const outcomes: unknown[] = [];
  const limiter = politely({ default: { window: "5/h", concurrency: 1 } });
  const first = await limiter.acquire("x.org");
  await using started = await Started.with({ limiter: spied(limiter, outcomes) });
  const socket = await started.connect();
  socket.write(acquire);
  await until(() => started.service.callers.size === 1, "one waits");
  // The grant is under way, as a promise, while the service's end of the connection closes.
  first.release();
  for (const open of started.accepted) open.destroy();
  await until(() => outcomes.length === 1, "it came back");
  socket.destroy();
  expect(outcomes).toEqual(["unused"]);
  expect(limiter.stats("x.org")?.window).toMatchObject({ calls: 1 });
  expect(started.service.permits.size).toBe(0);
});

it("gives back unused a permit whose answer could not be written", async () => {
  const outcomes: unknown[] = [];
  const limiter = politely({ default: { window: "5/h", concurrency: 1 } });
  const first = await limiter.acquire("x.org");
  await using started = await Started.with({ limiter: spied(limiter, outcomes) });
  const socket = await started.connect();
  // The answer to the second stands behind that of the first, which never comes: its place is granted, and nobody can hear of it.
  socket.write(requestText("/v1/acquire", { domain: "x.org" }) + requestText("/v1/acquire", { domain: "y.org" }));
  await until(() => started.service.permits.size === 1, "y.org is granted");
  socket.destroy();
  await until(() => outcomes.length === 1, "it came back");
  expect(outcomes).toEqual(["unused"]);
  expect(limiter.stats("y.org")).toMatchObject({ inFlight: 0, window: { calls: 0 } });
  first.release();
});

it("keeps the permit of a caller that closes its connection once it has the answer", async () => {
  await using started = await Started.with({ policy: held });
  const socket = await started.connect();
  socket.write(requestText("/v1/acquire", { domain: "x.org" }, "connection: close\r\n"));
  const text = await readAll(socket);
  await until(() => started.service.permits.size === 1, "it is held");
  const { permit } = JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4)) as { permit: string };
  expect((await started.post("/v1/release", { permit })).status).toBe(204);
});

it("turns callers away with 503 and Retry-After when too many wait, and lets them in again", async () => {
  const [service, permit] = await taken({ maxWaiting: 2 });
  await using started = service;
  const waiting = [1, 2].map(() => started.post("/v1/acquire", { domain: "x.org" }));
  await until(() => started.service.callers.size === 2, "two wait");
  const { status, headers, body } = await started.post("/v1/acquire", { domain: "y.org" });
  expect([status, headers.get("retry-after"), body.code]).toEqual([503, "1", "full"]);
  await started.post("/v1/release", { permit });
  await Promise.race(waiting);
  expect((await started.post("/v1/acquire", { domain: "y.org" })).status).toBe(200);
  started.service.dismiss();
  const statuses = (await Promise.all(waiting)).map((answer) => answer.status);
  expect(statuses.sort((a, b) => a - b)).toEqual([200, 503]);
});

it("turns callers away when too many permits are held", async () => {
  await using started = await Started.with({ maxPermits: 2 });
  const permits = await Promise.all([1, 2].map(() => started.post("/v1/acquire", { domain: "x.org" })));
  expect((await started.post("/v1/acquire", { domain: "x.org" })).status).toBe(503);
  await started.post("/v1/release", { permit: permits[0].body.permit });
  expect((await started.post("/v1/acquire", { domain: "x.org" })).status).toBe(200);
});

it("settles everyone when it stops: those who wait and those who come get 503, permits can still be renewed and released", async () => {
  const [service, permit] = await taken();
  await using started = service;
  const waiting = Array.from({ length: 50 }, () => started.post("/v1/acquire", { domain: "x.org" }));
  await until(() => started.service.callers.size === 50, "fifty wait");
  started.service.dismiss();
  for (const { status, headers, body } of await Promise.all(waiting)) {
    expect([status, headers.get("retry-after"), body.code]).toEqual([503, "5", "stopping"]);
  }
  expect((await started.post("/v1/acquire", { domain: "y.org" })).status).toBe(503);
  expect((await started.post("/v1/check", { domain: "y.org" })).status).toBe(503);
  expect((await started.get("/healthz")).status).toBe(503);
  expect((await started.post("/v1/renew", { permit })).status).toBe(200);
  expect((await started.post("/v1/release", { permit, outcome: "success" })).status).toBe(204);
  await started.service.permits.emptied();
  expect(started.limiter.stats("x.org")).toMatchObject({ asked: 51, granted: 1, cancelled: 50, inFlight: 0 });
});

it("tells each caller of its grant in the order in which they came, higher priority first", async () => {
  const clock = new VirtualClock();
  await using started = await Started.with({ limiter: politely({ default: { minDelay: "1s" } }, { clock }) });
  await started.post("/v1/acquire", { domain: "x.org" });
  const order: string[] = [];
  const calls: Promise<unknown>[] = [];
  for (const [index, priority] of [0, 0, 5].entries()) {
    calls.push(started.post("/v1/acquire", { domain: "x.org", priority }).then(() => order.push(`${index}`)));
    await until(() => started.service.callers.size === index + 1, "it waits");
  }
  for (let told = 1; told <= 3; told++) {
    await clock.advance(1_000);
    await until(() => order.length === told, "one is told");
  }
  await Promise.all(calls);
  expect(order).toEqual(["2", "0", "1"]);
});

it("has a line in the log of requests for a caller that went before its answer", async () => {
  const told: string[] = [];
  const [service, permit] = await taken({
    onAnswered: (method, path, status) => told.push(`${method} ${path} ${status}`),
  });
  await using started = service;
  told.length = 0;
  const socket = await started.connect();
  socket.write(acquire.repeat(2));
  await until(() => started.service.callers.size === 2, "two wait");
  socket.destroy();
  await until(() => told.length === 2, "both are told");
  await started.post("/v1/release", { permit });
  expect(told).toEqual(["POST /v1/acquire 499", "POST /v1/acquire 499", "POST /v1/release 204"]);
  for (const open of started.accepted) open.destroy();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(told).toHaveLength(3);
});

/** The same limiter, whose permits write down how they come back. */
function spied(limiter: Limiter, outcomes: unknown[]): Limiter {
  return new Proxy(limiter, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name !== "acquire") return value.bind(target) as unknown;
      return async (...args: Parameters<Limiter["acquire"]>): Promise<Permit> => {
        const permit = await target.acquire(...args);
        const release = permit.release.bind(permit);
        return Object.assign(Object.create(permit) as Permit, {
          release(outcome?: Parameters<Permit["release"]>[0]) {
            outcomes.push(outcome);
            release(outcome);
          },
        });
      };
    },
  });
}
