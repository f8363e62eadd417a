import { describe, expect, it } from "vitest";
import type { Limits, PolicyInput, Rate } from "../../src/index.js";
import { granted, many, rig, track } from "../verbs/support.js";

const host = "a.example";
const all = (limits: Limits): PolicyInput => ({ default: limits });
const window = (...rates: Rate[]): PolicyInput => all({ window: rates });

describe("a window that becomes longer", () => {
  it.each<{ title: string; look: (limiter: ReturnType<typeof rig>["limiter"]) => void }>([
    { title: "nobody", look: () => undefined },
    { title: "check", look: (limiter) => limiter.check(host) },
    { title: "explain", look: (limiter) => limiter.explain(host) },
    { title: "stats of the host", look: (limiter) => limiter.stats(host) },
  ])("counts the starts that had left the shorter one, whoever has looked at it: $title", async ({ look }) => {
    const { clock, limiter } = rig(window("10/10s"));
    many(10, () => granted(limiter.tryAcquire(host)).release());
    await clock.advance(11_000);
    look(limiter);
    limiter.configure(window("10/min"));
    expect(limiter.check(host).waitMs).toBe(49_000);
  });

  it.each<{ title: string; policyOf: (rate: Rate) => PolicyInput }>([
    { title: "of a host", policyOf: (rate) => window(rate) },
    { title: "over everything", policyOf: (rate) => ({ default: {}, global: { window: rate } }) },
  ])("counts the last start after what was over has been let go: $title", async ({ policyOf }) => {
    const { clock, limiter } = rig(policyOf("1/10s"));
    granted(limiter.tryAcquire(host)).release();
    await clock.advance(11_000);
    limiter.stats();
    limiter.configure(policyOf("1/min"));
    expect(limiter.check(host).waitMs).toBe(49_000);
  });

  it("keeps a start when an older one is returned that it never knew", async () => {
    const { clock, limiter } = rig(window("1/10s"));
    const old = granted(limiter.tryAcquire(host));
    await clock.advance(11_000);
    granted(limiter.tryAcquire(host));
    limiter.configure(window("1/min"));
    await clock.advance(1_000);
    old.release("unused");
    expect(limiter.check(host).waitMs).toBe(59_000);
  });

  it("has room again when the start that fills it is returned, however long ago that left the shorter one", async () => {
    const { clock, limiter } = rig(window("1/10s"));
    const start = granted(limiter.tryAcquire(host));
    await clock.advance(11_000);
    limiter.configure(window("1/min"));
    expect(limiter.tryAcquire(host)).toBeUndefined();
    start.release("unused");
    expect(limiter.tryAcquire(host)).toBeDefined();
  });
});

describe("a window that becomes smaller", () => {
  it("still counts what was sent when more than twice its count is returned", async () => {
    const { clock, limiter } = rig(window("4/5s"));
    granted(limiter.tryAcquire(host)).release();
    const unused = [];
    for (let count = 0; count < 3; count++) {
      await clock.advance(100);
      unused.push(granted(limiter.tryAcquire(host)));
    }
    limiter.configure(window("1/5s"));
    for (const permit of unused) permit.release("unused");
    expect(limiter.check(host).waitMs).toBe(4_700);
  });
});

describe("a window that comes beside others", () => {
  it("lets no more starts through for the return of one from before", async () => {
    const { clock, limiter } = rig(window("10/s", "100/min"));
    const old = granted(limiter.tryAcquire(host));
    await clock.advance(61_000);
    limiter.configure(window("10/s", "100/min", "2/h"));
    const first = [1, 2].map(() => limiter.tryAcquire(host) !== undefined);
    old.release("unused");
    const second = [1, 2].map(() => limiter.tryAcquire(host) !== undefined);
    expect([...first, ...second].filter(Boolean)).toHaveLength(2);
  });
});

describe("a window that is changed and set back", () => {
  it.each<{ title: string; between: PolicyInput }>([
    { title: "shorter", between: window("10/s") },
    { title: "shorter, and larger", between: window("100/s") },
    { title: "smaller", between: window("1/min") },
    { title: "another beside it", between: window("10/s", "50/10s") },
    { title: "none", between: all({}) },
  ])("gives nothing again: $title", async ({ between }) => {
    const { clock, limiter } = rig(window("10/min"));
    many(10, () => granted(limiter.tryAcquire(host)).release());
    await clock.advance(5_000);
    limiter.configure(between);
    limiter.configure(window("10/min"));
    expect(limiter.check(host).waitMs).toBe(55_000);
  });

  it("knows every start made meanwhile, and who of them was returned", async () => {
    const { clock, limiter } = rig(window("4/min"));
    granted(limiter.tryAcquire(host)).release();
    limiter.configure(window("1/s"));
    const permits = [];
    for (let index = 0; index < 5; index += 1) {
      await clock.advance(2_000);
      limiter.check(host);
      permits.push(granted(limiter.tryAcquire(host)));
    }
    limiter.configure(window("4/min"));
    // Six starts at 0, 2, … 10 s: the fourth from the end has to leave.
    expect(limiter.check(host).waitMs).toBe(54_000);
    permits[1].release("unused");
    permits[2].release("unused");
    expect(limiter.check(host).waitMs).toBe(50_000);
  });

  it("knows recorded starts, too, however small it was meanwhile", async () => {
    const { clock, limiter } = rig(window("10/10s"));
    for (let index = 0; index < 10; index += 1) {
      granted(limiter.tryAcquire(host)).release();
      await clock.advance(10);
    }
    limiter.configure(window("1/10s"));
    limiter.record(host, "success");
    await clock.advance(10);
    limiter.configure(window("10/10s"));
    // Eleven starts at 0, 10, … 100 ms: the second has to leave.
    expect(limiter.check(host).waitMs).toBe(9_900);
  });

  it("counts no start that was made meanwhile and returned", async () => {
    const { clock, limiter } = rig(window("2/10s"));
    many(2, () => granted(limiter.tryAcquire(host)).release());
    limiter.configure(window("2/s"));
    await clock.advance(1_000);
    const between = granted(limiter.tryAcquire(host));
    between.release("unused");
    limiter.configure(window("3/10s"));
    expect(limiter.check(host).waitMs).toBe(0);
  });
});

describe("a window from the answer", () => {
  it("lets a start that was held too long leave on time, also when another was recorded before anybody looked", async () => {
    const { clock, limiter } = rig(all({ window: "2/3s", countFrom: "answer", maxHold: "1s" }));
    granted(limiter.tryAcquire(host));
    await clock.advance(2_500);
    limiter.record(host, "success");
    expect(limiter.check(host).waitMs).toBe(1_500);
  });

  it("knows of an answer that came while it was away, however late and through other changes", async () => {
    const answer = all({ window: "1/10s", countFrom: "answer" });
    const { clock, limiter } = rig(answer);
    const permit = granted(limiter.tryAcquire(host));
    for (const concurrency of [2, 3]) {
      limiter.configure(all({ concurrency }));
      await clock.advance(60_000);
    }
    permit.release("success");
    limiter.configure(answer);
    expect(limiter.check(host).waitMs).toBe(10_000);
  });

  it("gives a start back that comes to be counted from its start, though one after it was answered before", async () => {
    const answer: Limits = { window: "2/10s", countFrom: "answer" };
    const { clock, limiter } = rig(all(answer));
    const first = granted(limiter.tryAcquire(host));
    await clock.advance(1_000);
    granted(limiter.tryAcquire(host)).release("success");
    await clock.advance(1_000);
    limiter.configure(all({ ...answer, countFrom: "start" }));
    expect(limiter.check(host).waitMs).toBe(8_000);
    first.release("unused");
    expect(limiter.check(host).waitMs).toBe(0);
  });
});

describe("a quota that was forgiven", () => {
  it.each<{ title: string; before: PolicyInput; after: PolicyInput }>([
    { title: "one key", before: {}, after: {} },
    { title: "a key that has become part of another", before: { hosts: { "a.example:81": quota() } }, after: {} },
  ])("is not made larger by the return of a start from before: $title", ({ before, after }) => {
    const { limiter } = rig({ default: quota(), ...before });
    const target = "http://a.example:81/";
    granted(limiter.tryAcquire(host)).release("unused");
    const old = granted(limiter.tryAcquire(target));
    limiter.configure({ default: quota(), ...after });
    limiter.reset(undefined, "all");
    granted(limiter.tryAcquire(host));
    old.release("unused");
    expect(limiter.tryAcquire(host)).toBeUndefined();
  });

  it("still takes a start back that is returned after other limits came", async () => {
    const { clock, limiter } = rig({ default: quota() });
    const start = granted(limiter.tryAcquire(host));
    limiter.configure({ default: { ...quota(), rate: "1/s" } });
    const waiting = track(limiter.acquire(host));
    await clock.advance(2_000);
    expect(waiting.state).toBe("pending");
    start.release("unused");
    await clock.advance(0);
    expect(waiting.state).toBe("done");
  });
});

function quota(): Limits {
  return { quota: { count: 1, per: "day" } };
}
