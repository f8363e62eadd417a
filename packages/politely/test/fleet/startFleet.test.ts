import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkStarts } from "./checkStarts.js";
import { type CompiledLibrary, compileLibrary } from "./compileLibrary.js";
import { isAlive } from "./isAlive.js";
import { joinStarts } from "./joinStarts.js";
import { type Fleet, type FleetOptions, startFleet } from "./startFleet.js";
import { until } from "./until.js";

let library: CompiledLibrary;
beforeAll(async () => {
  library = await compileLibrary();
});
afterAll(() => library.remove());

function start(ids: readonly string[], more: Partial<FleetOptions> = {}): Promise<Fleet> {
  const program = new URL("programs/sample.mjs", import.meta.url);
  return startFleet({ library, program, members: ids.map((id) => ({ id })), ...more });
}

function countOf(fleet: Fleet, member: string, type = "start"): number {
  return fleet.log().filter((entry) => entry.member === member && entry.type === type).length;
}

/** Waits until the member has logged this many more. */
async function more(fleet: Fleet, member: string, type = "start", count = 3): Promise<void> {
  const before = countOf(fleet, member, type);
  await until(`${member} logs ${count} more`, 10_000, () => countOf(fleet, member, type) >= before + count);
}

describe("a fleet", () => {
  it("begins together, works with the library as it is now, and hands over one log", async () => {
    const members = [{ id: "a" }, { id: "b", input: { everyMs: 3 } }];
    await using fleet = await start([], { members, input: { everyMs: 2, note: "all" } });
    expect(fleet.log()).toEqual([]);
    fleet.go("now");
    await Promise.all([more(fleet, "a"), more(fleet, "b")]);
    const entries = await fleet.finish(10_000);

    const begun = entries.filter(({ type }) => type === "began");
    const common = { wish: "now", ready: 15 };
    expect(begun.toSorted((x, y) => x.member.localeCompare(y.member))).toMatchObject([
      { member: "a", input: { everyMs: 2, note: "all" }, ...common },
      { member: "b", input: { everyMs: 3, note: "all" }, ...common },
    ]);
    const times = entries.map(({ machineUs }) => machineUs);
    expect(times).toEqual(times.toSorted((x, y) => x - y));
    const starts = joinStarts(entries);
    expect(new Set(starts.map(({ member }) => member))).toEqual(new Set(["a", "b"]));
    expect(starts.every(({ releasedUs = 0, startedUs, token }) => releasedUs > startedUs && token === 7)).toBe(true);
    // They asked nobody, and the log shows it.
    expect(checkStarts(starts, { gapUs: 1_000_000 })).toHaveLength(starts.length - 1);
    expect(entries.filter(({ type }) => type === "ended")).toHaveLength(2);
    expect(fleet.members.map(({ pid }) => isAlive(pid))).toEqual([false, false]);
  });

  it("keeps what a killed member had logged, and the others go on", async () => {
    await using fleet = await start(["a", "b"]);
    fleet.go();
    await Promise.all([more(fleet, "a"), more(fleet, "b")]);
    await fleet.kill("a");
    expect(isAlive(fleet.members[0].pid)).toBe(false);
    const atDeath = countOf(fleet, "a");
    await more(fleet, "b");
    const entries = await fleet.finish(10_000);
    expect(countOf(fleet, "a")).toBe(atDeath);
    expect(entries.filter(({ member, type }) => member === "a" && type === "killed")).toHaveLength(1);
  });

  it("pauses a member in the middle of its work, and resumes it", async () => {
    await using fleet = await start(["a", "b"]);
    fleet.go();
    await Promise.all([more(fleet, "a"), more(fleet, "b")]);
    await fleet.pause("a");
    await more(fleet, "b");
    const whilePaused = countOf(fleet, "a");
    await more(fleet, "b", "start", 20);
    expect(countOf(fleet, "a")).toBe(whilePaused);
    fleet.resume("a");
    await more(fleet, "a");
    const types = (await fleet.finish(10_000)).filter(({ member }) => member === "a").map(({ type }) => type);
    expect(types.filter((type) => type === "paused" || type === "resumed")).toEqual(["paused", "resumed"]);
  });

  it("takes in a member later, and sends commands of the program's own", async () => {
    await using fleet = await start(["a"]);
    fleet.go();
    await more(fleet, "a");
    await fleet.add({ id: "b" });
    expect(countOf(fleet, "b", "began")).toBe(0);
    fleet.go();
    await more(fleet, "b");
    const said = more(fleet, "b", "said", 1);
    fleet.send("b", "say", { word: "Grüße" });
    await said;
    expect(await fleet.finish(10_000)).toContainEqual(
      expect.objectContaining({ type: "said", member: "b", data: { word: "Grüße" } }),
    );
  });

  it("is gone after stopAll, paused members too", async () => {
    const fleet = await start(["a", "b"]);
    fleet.go();
    await fleet.pause("a");
    await fleet.stopAll();
    expect(fleet.members.map(({ pid }) => isAlive(pid))).toEqual([false, false]);
    await fleet.stopAll();
    await expect(fleet.pause("a")).rejects.toThrow("it has ended");
  });
});

describe("a fleet in which something goes wrong", () => {
  it("does not begin with a member that fails, and says what that member said", async () => {
    const members = [{ id: "good" }, { id: "bad", input: { behaviour: "fails to begin" } }];
    await expect(start([], { members })).rejects.toThrow(
      /Member bad ended with exit code 1.*the sample's own mistake/s,
    );
  });

  it("does not wait for ever for a member that is never ready", async () => {
    const input = { behaviour: "never ready" };
    await expect(start(["a"], { input, readyWithinMs: 500 })).rejects.toThrow("Not within 500 ms");
  });

  it.each([
    ["crashes", "Member a ended with exit code 3"],
    ["babbles", "Member a logged what is no entry: not an entry"],
  ])("says at the end that a member %s", async (behaviour, message) => {
    await using fleet = await start(["a"], { input: { behaviour } });
    fleet.go();
    await until("the mistake is made", 5_000, () => !fleet.members[0].isAlive || countOf(fleet, "a", "began") > 0);
    await expect(fleet.finish(10_000)).rejects.toThrow(message);
  });

  it("says who did not stop, and ends them", async () => {
    await using fleet = await start(["a", "b"], {
      members: [{ id: "a" }, { id: "b", input: { behaviour: "never ends" } }],
    });
    fleet.go();
    await more(fleet, "b");
    await expect(fleet.finish(1_000)).rejects.toThrow(/Still there: .*b\./);
    expect(isAlive(fleet.members[1].pid)).toBe(false);
  });

  it("ends a member that lives too long, and says so", async () => {
    const input = { behaviour: "never ready" };
    await expect(start(["a"], { input, longestMs: 600 })).rejects.toThrow(/after 600 ms|exit code 70/);
  });

  it.each([
    ["no name", [{ id: "" }], 'got ""'],
    ["one name twice", [{ id: "a" }, { id: "a" }], "already"],
  ])("refuses %s", async (_title, members, message) => {
    await expect(start([], { members })).rejects.toThrow(message);
  });

  it("refuses a command to nobody", async () => {
    await using fleet = await start(["a"]);
    expect(() => fleet.send("b", "say")).toThrow('no member "b"');
  });
});

describe("compileLibrary", () => {
  it("leaves nothing once it is removed", async () => {
    const compiled = await compileLibrary();
    const entry = new URL("index.js", compiled.url);
    expect(existsSync(entry)).toBe(true);
    compiled.remove();
    expect(existsSync(entry)).toBe(false);
    compiled.remove();
  });
});
