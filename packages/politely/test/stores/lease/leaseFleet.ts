import { afterAll, beforeAll, expect, inject, it } from "vitest";
import type { FleetEntry } from "../../fleet/fleetMember.js";
import { type Fleet, type MemberOptions, startFleet } from "../../fleet/startFleet.js";
import { until } from "../../fleet/until.js";
import { many } from "../../verbs/support.js";

/** A store that processes can share. */
export interface LeasePlace {
  /** Which entry of `openStore.mjs` opens it. */
  readonly kind: string;
  /** What that entry needs to find it; it has to survive JSON. */
  readonly address: Readonly<Record<string, string>>;
  /** By how much its clients may disagree about the time. Default 0: they read one clock. */
  readonly skewMs?: number;
  close(): Promise<void>;
}

const crowd = 100;
/** Many processes on a small machine take their time to start and to end. */
const crowdWithinMs = 120_000;
const withinMs = 30_000;
/** How much later than promised a busy machine may do something. */
const slackMs = 3_000;
let leases = 0;

/** Opens places by name for all tests of a file, side by side. The function returned gives one of them. */
export function openPlaces(places: Readonly<Record<string, () => Promise<LeasePlace>>>): (name: string) => LeasePlace {
  const opened = new Map<string, LeasePlace>();
  beforeAll(async () => {
    await Promise.all(Object.entries(places).map(async ([name, open]) => opened.set(name, await open())));
  }, crowdWithinMs);
  afterAll(() => Promise.all([...opened.values()].map((place) => place.close())));
  return (name) => {
    const place = opened.get(name);
    if (place === undefined) throw new Error(`The place "${name}" is opened before the tests.`);
    return place;
  };
}

/** Checks with one hundred real processes that one of many has a lease, at one place after the other. They need the machine for themselves. */
export function crowdProof(names: readonly string[], place: (name: string) => LeasePlace): void {
  const ttlMs = 60_000;
  let fleet: Fleet;
  beforeAll(async () => {
    const places = names.map((name) => [name, { kind: place(name).kind, address: place(name).address }] as const);
    fleet = await startFleet({
      ...terms("crowded.mjs"),
      members: many(crowd, (index) => ({ id: `run-${index}` })),
      input: { places: Object.fromEntries(places), ttl: ttlMs },
    });
    fleet.go();
  }, crowdWithinMs);
  afterAll(() => fleet.finish(crowdWithinMs), crowdWithinMs);

  it.each(names)(
    "of a hundred processes that ask %s at once exactly one runs, and ninety-nine are told who has it and until when",
    async (name) => {
      leases += 1;
      const lease = `lease ${leases}`;
      const answers = (): FleetEntry[] => fleet.log().filter((entry) => entry.lease === lease);
      for (const { id } of fleet.members) fleet.send(id, "ask", { place: name, lease });
      await until("all have an answer", crowdWithinMs, () => answers().length === crowd);
      const of = (type: string): FleetEntry[] => answers().filter((entry) => entry.type === type);
      expect(of("failed")).toEqual([]);
      const [held, refused] = [of("held"), of("refused")];
      expect([held.length, refused.length]).toEqual([1, crowd - 1]);
      expect(new Set(refused.map(({ heldBy }) => heldBy))).toEqual(new Set([held[0].member]));
      const remaining = refused.map(({ remainingMs }) => remainingMs as number);
      expect(Math.min(...remaining)).toBeGreaterThan(0);
      expect(Math.max(...remaining)).toBeLessThanOrEqual(ttlMs + (place(name).skewMs ?? 0));
    },
    2 * crowdWithinMs,
  );
}

/** Checks with real processes that one at a time has a lease, whatever happens to the others. These wait for the most part. */
export function lossProof(place: () => LeasePlace): void {
  it(
    "the next one has it within its life when the holder is killed, though their clocks are two minutes apart",
    async () => {
      const ttlMs = 3_000;
      await using fleet = await start(place(), [{ id: "first", clockOffsetSec: 60 }], ttlMs);
      await go(fleet, "first", "held");
      await fleet.add({ id: "second", clockOffsetSec: -60, input: { wait: withinMs } });
      fleet.go();
      await fleet.add({ id: "third" });
      await fleet.kill("first");
      await go(fleet, "third", "refused");
      const [{ heldBy, remainingMs }] = logged(fleet, "refused");
      expect(heldBy).toBe("first");
      expect(remainingMs).toBeLessThanOrEqual(ttlMs + (place().skewMs ?? 0));
      await has(fleet, "second", "held");
      const [{ machineUs: killedUs }] = logged(fleet, "killed");
      const [before, after] = logged(fleet, "held");
      expect(after.machineUs - killedUs).toBeLessThanOrEqual((ttlMs + slackMs) * 1_000);
      expect(after.token).toBeGreaterThan(before.token as number);
      await fleet.finish(withinMs);
    },
    3 * withinMs,
  );

  it(
    "one that stood still sees at once that it is lost, and cannot release what the next one has",
    async () => {
      await using fleet = await start(place(), [{ id: "first" }], 3_000);
      await go(fleet, "first", "held");
      await fleet.add({ id: "second", input: { wait: withinMs } });
      fleet.go();
      await fleet.pause("first");
      await has(fleet, "second", "held");
      // It reads these when it goes on, before or after its own timers.
      fleet.send("first", "look");
      fleet.send("first", "release");
      fleet.resume("first");
      await has(fleet, "first", "released");
      expect(logged(fleet, "looked")).toMatchObject([{ member: "first", aborted: true, loss: "expired" }]);
      await fleet.add({ id: "third" });
      await go(fleet, "third", "refused");
      expect(logged(fleet, "refused")).toMatchObject([{ heldBy: "second" }]);
      fleet.send("second", "look");
      await until("the second has looked", withinMs, () => logged(fleet, "looked").length === 2);
      expect(logged(fleet, "looked")[1]).toMatchObject({ member: "second", aborted: false });
      await fleet.finish(withinMs);
    },
    3 * withinMs,
  );

  it(
    "one that has nothing else to do ends, though it holds a lease",
    async () => {
      await using fleet = await start(place(), [{ id: "first", input: { leaves: true } }], 600_000);
      fleet.go();
      await has(fleet, "first", "ended");
      expect(logged(fleet, "held")).toHaveLength(1);
      await fleet.finish(withinMs);
    },
    3 * withinMs,
  );
}

/** Starts members that will ask for a lease of their own. */
function start({ kind, address }: LeasePlace, members: readonly MemberOptions[], ttlMs: number): Promise<Fleet> {
  leases += 1;
  const input = { kind, address, name: `lease ${leases}`, ttl: ttlMs };
  return startFleet({ ...terms("holder.mjs"), members, input });
}

/** What every fleet is started with here. */
function terms(program: string) {
  return {
    library: { url: inject("bundleUrl") },
    program: new URL(program, import.meta.url),
    readyWithinMs: crowdWithinMs,
    longestMs: 2 * crowdWithinMs,
  };
}

function logged(fleet: Fleet, type: string): FleetEntry[] {
  return fleet.log().filter((entry) => entry.type === type);
}

/** Lets those begin who have not, and waits for what one of them gets. */
async function go(fleet: Fleet, member: string, type: string): Promise<void> {
  fleet.go();
  await has(fleet, member, type);
}

async function has(fleet: Fleet, member: string, type: string): Promise<void> {
  await until(`${member} logs "${type}"`, withinMs, () => logged(fleet, type).some((entry) => entry.member === member));
}
