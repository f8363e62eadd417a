import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkStarts } from "../../../../packages/politely/test/fleet/checkStarts.js";
import { until } from "../../../../packages/politely/test/fleet/until.js";
import { type DynamodbServer, startDynamodb } from "../../../../packages/politely/test/servers/dynamodb.js";
import type { Answer, Machine } from "../../src/local/startMachine.js";
import { invokeUntilRun, type Scene, setScene } from "./rig.js";

const bucket = { count: 1, perUs: 2_000_000, burst: 5 };
const lockSeconds = 5;
/** To what DynamoDB's time is known, on a machine that has other things to do. */
const clockErrorMs = 300;
/** How much closer together requests may arrive than they started: the clock's error, and what one was held up on its way. */
const arrivalSlackUs = 500_000;

let dynamodb: DynamodbServer;
beforeAll(async () => {
  dynamodb = await startDynamodb();
}, 60_000);
afterAll(() => dynamodb.stop());

describe("five machines", () => {
  const names = ["one", "two", "three", "four", "five"];
  let scene: Scene;
  let machines: Machine[];
  beforeAll(async () => {
    scene = await setScene(dynamodb.endpoint, 1);
    machines = await Promise.all(names.map((name) => scene.start(name)));
  }, 60_000);
  afterAll(() => scene[Symbol.asyncDispose]());

  const sumOf = (metric: string): number =>
    machines.flatMap(({ log }) => log).reduce((sum, line) => sum + Number(line[metric] ?? 0), 0);

  it("answer 100 invocations at once with one run, and ninety-nine times with who runs", async () => {
    // A test that is tried again finds what it left behind.
    const before = { taken: sumOf("LeasesTaken"), failed: sumOf("LeaseFailures"), seen: scene.site.arrivals.length };
    const letGo = scene.site.hold();
    const answers: Answer[] = [];
    const invocations = Array.from({ length: 100 }, async (_, index) => {
      const trigger = index % 2 === 0 ? "schedule" : "manual";
      answers.push(await machines[index % machines.length].invoke(trigger, `${index}`));
    });
    // The one that runs waits for the site meanwhile, so that nobody comes after its end.
    await until("ninety-nine have their answer", 40_000, () => answers.length >= 99);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array.from({ length: 99 }, () => 409));
    letGo();
    await Promise.all(invocations);

    const run = answers[99];
    expect(run).toMatchObject({ statusCode: 200, body: { pageCount: 1, documentCount: 3, isComplete: true } });
    const holders = [...new Set(answers.slice(0, 99).map(({ body }) => body?.heldBy))];
    expect(holders).toEqual([expect.stringContaining(`request ${run.requestId},`)]);
    expect([sumOf("LeasesTaken") - before.taken, sumOf("LeaseFailures") - before.failed]).toEqual([1, 99]);
    expect(scene.site.arrivals.length - before.seen).toBe(2);
  });

  it("start requests no closer together than the bucket allows, and one at a time", async () => {
    const beforeCount = scene.site.arrivals.length;
    const runs = await Promise.all(machines.map((machine, index) => invokeUntilRun(machine, names[index])));
    expect(runs.map((answers) => answers.at(-1)?.statusCode)).toEqual([200, 200, 200, 200, 200]);

    const arrivals = scene.site.arrivals.slice(beforeCount);
    const grants = machines.flatMap(({ log }) => log.filter(({ type }) => type === "grant"));
    expect([arrivals.length, grants.length - beforeCount, scene.site.mostAtOnce]).toEqual([10, 10, 1]);
    const callers = new Set(arrivals.map(({ userAgent }) => userAgent));
    expect(callers).toEqual(new Set(names.map((name) => `tdnet-collector/1.0 (+${name}@example.org)`)));
    // By the time of DynamoDB, on which the limit is kept, it holds exactly.
    const started = grants.map(({ startedAtMs = 0 }) => ({ key: "site", startedUs: Math.round(startedAtMs * 1_000) }));
    expect(checkStarts(started, { rate: bucket }), "a limit was broken").toEqual([]);
    const arrived = arrivals.map(({ atMs }) => ({ key: "site", startedUs: Math.round(atMs * 1_000) }));
    expect(checkStarts(arrived, { rate: bucket, slackUs: arrivalSlackUs })).toEqual([]);
  });
});

describe.concurrent("when things go wrong", () => {
  const lock = { LOCK_SECONDS: String(lockSeconds) };

  it("the lock of a killed run is free when its lifetime is over, and not before", async ({ expect }) => {
    await using scene = await setScene(dynamodb.endpoint, 100);
    const next = await scene.start("next", { ...lock, MAX_PAGES: "1" });
    const doomed = await scene.start("doomed", lock);
    await pastBurst(scene, doomed.invoke("schedule", "doomed"));
    await doomed.end();
    const askedMs = Date.now();
    const refused = await next.invoke("manual", "at once");
    const answeredMs = Date.now();
    expect(refused.statusCode).toBe(409);
    expect(refused.body?.heldBy).toContain("request doomed,");
    const remainingMs = refused.body?.remainingMs ?? 0;
    expect(remainingMs).toBeGreaterThan(0);
    expect(remainingMs).toBeLessThanOrEqual(lockSeconds * 1_000 + clockErrorMs);

    const last = (await invokeUntilRun(next, "next")).at(-1);
    expect(last).toMatchObject({ statusCode: 200, body: { pageCount: 1, isComplete: false } });
    // A token is the instant at which its lease was taken, in microseconds of DynamoDB's clock, which is this machine's here.
    const takenMs = Number(last?.body?.token) / 1_000;
    expect(takenMs).toBeGreaterThanOrEqual(askedMs + remainingMs - clockErrorMs);
    expect(takenMs).toBeLessThan(answeredMs + remainingMs + 2_000);
  });

  it("a run that was frozen past its lifetime changes nothing when it goes on: no request, no release", async ({
    expect,
  }) => {
    await using scene = await setScene(dynamodb.endpoint, 100);
    const third = await scene.start("third", lock);
    const next = await scene.start("next", lock);
    const frozen = await scene.start("frozen", lock);
    const requestsOf = (name: string): number =>
      scene.site.arrivals.filter(({ userAgent }) => userAgent.includes(name)).length;

    const late = frozen.invoke("schedule", "frozen");
    await pastBurst(scene, late);
    frozen.kill("SIGSTOP");
    const beforeCount = requestsOf("frozen");
    void invokeUntilRun(next, "next").catch(() => undefined);
    await until("the next run is at it", 40_000, () => requestsOf("next") > 0);

    frozen.kill("SIGCONT");
    expect((await late).error).toMatch(/^LeaseLostError: The lease "tdnet-collector" .* is lost/);
    expect(requestsOf("frozen")).toBe(beforeCount);
    const refused = await third.invoke("manual", "third");
    expect(refused.statusCode).toBe(409);
    expect(refused.body?.heldBy).toContain("request next-");
  });

  it("a run that would outlive its function ends before, and gives the lock back", async ({ expect }) => {
    await using scene = await setScene(dynamodb.endpoint, 1);
    const machine = await scene.start("one");
    const letGo = scene.site.hold();
    // Ten seconds are kept for the end.
    const { error } = await machine.invoke("schedule", "slow", 13_000);
    expect(error).toMatch(
      /^Error: The run was not over after \d+ ms\. Lower MAX_PAGES, or give the function longer\.$/,
    );
    letGo();
    expect(await machine.invoke("manual", "next")).toMatchObject({ statusCode: 200 });
  });

  it("a site that answers 503 is left alone for 5 s, then asked again for the same page", async ({ expect }) => {
    await using scene = await setScene(dynamodb.endpoint, 1);
    scene.site.fail(503);
    const machine = await scene.start("one");
    expect(await machine.invoke("schedule", "one")).toMatchObject({ statusCode: 200, body: { pageCount: 1 } });
    const [first, second, third] = scene.site.arrivals;
    expect([second.path === first.path, third.path === first.path]).toEqual([true, false]);
    expect(second.atMs - first.atMs).toBeGreaterThanOrEqual(5_000 - clockErrorMs);
  });
});

/** Resolves at the sixth request, when the burst is spent. Rejects where the run is over before, and says how. */
async function pastBurst({ site }: Scene, run: Promise<Answer>): Promise<void> {
  let early: Answer | undefined;
  run.then(
    (answer) => {
      early = answer;
    },
    () => undefined, // its machine was ended later on
  );
  await until("the burst is spent", 40_000, () => site.arrivals.length >= 6 || early !== undefined);
  if (site.arrivals.length < 6) throw new Error(`The run is over too soon: ${JSON.stringify(early)}`);
}
