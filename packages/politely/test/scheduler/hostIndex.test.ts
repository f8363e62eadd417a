import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HostIndex } from "../../src/scheduler/hostIndex.js";
import { seeded } from "../laws/seeded.js";

/** Sets hosts at the lowest free row, as a slab gives them out, and knows the truth. */
class World {
  readonly truth = new Map<string, number>();
  readonly index = new HostIndex(8);

  set(name: string): void {
    if (this.truth.has(name)) return;
    const taken = new Set(this.truth.values());
    let row = 0;
    while (taken.has(row)) row += 1;
    this.truth.set(name, row);
    this.index.set(name, row);
  }

  delete(name: string): void {
    if (this.index.delete(name) !== this.truth.delete(name))
      throw new Error(`${name} was there for one of the two only`);
  }

  get sorted(): [string, number][] {
    return [...this.truth].sort(([one], [other]) => (one < other ? -1 : 1));
  }
}

const hosts = Array.from({ length: 60 }, (_, number) => `h${number}.example.com`);
const steps = fc.array(fc.record({ host: fc.constantFrom(...hosts), isSet: fc.boolean() }), { maxLength: 300 });

function play(world: World, script: readonly { readonly host: string; readonly isSet: boolean }[]): void {
  for (const { host, isSet } of script) {
    if (isSet) world.set(host);
    else world.delete(host);
  }
}

describe("an index of hosts", () => {
  it("knows what a Map knows, however often it grows and shrinks", () => {
    fc.assert(
      fc.property(steps, (script) => {
        const world = new World();
        for (const step of script) {
          play(world, [step]);
          expect(world.index.size).toBe(world.truth.size);
        }
        expect(hosts.map((host) => world.index.get(host))).toEqual(hosts.map((host) => world.truth.get(host)));
        expect([...world.index].sort(([one], [other]) => (one < other ? -1 : 1))).toEqual(world.sorted);
        expect([...world.index.keys()].sort()).toEqual([...world.truth.keys()].sort());
        expect(new Set(world.index.values())).toEqual(new Set(world.truth.values()));
      }),
      seeded(300),
    );
  });

  it("shows each host that is there all the while once, whatever comes and goes while somebody walks", () => {
    fc.assert(
      fc.property(steps, fc.array(steps, { minLength: 1, maxLength: 8 }), (before, meanwhile) => {
        const world = new World();
        play(world, before);
        const stayed = new Map(world.truth);
        const met: string[] = [];
        let turn = 0;
        for (const [host, row] of world.index) {
          expect(world.truth.get(host)).toBe(row);
          met.push(host);
          for (const step of meanwhile[turn++ % meanwhile.length]) {
            play(world, [step]);
            if (!world.truth.has(step.host)) stayed.delete(step.host);
          }
          expect(turn).toBeLessThan(1_000);
        }
        for (const host of stayed.keys()) expect(met.filter((each) => each === host)).toEqual([host]);
      }),
      seeded(300),
    );
  });

  it("keeps the order of first use while they are few", () => {
    const index = new HostIndex();
    const names = ["b", "a", "c"];
    for (const [row, name] of names.entries()) index.set(name, 9 - row);
    expect([...index.keys()]).toEqual(names);
  });

  it("finds every one of 100,000 hosts, and none that was never set", () => {
    const index = new HostIndex();
    const name = (number: number): string => `host${number}.example.com`;
    for (let row = 0; row < 100_000; row++) index.set(name(row), row);
    for (let row = 0; row < 100_000; row += 2) index.delete(name(row));
    for (let row = 0; row < 100_000; row++) {
      if (index.get(name(row)) !== (row % 2 === 0 ? undefined : row))
        expect.fail(`${name(row)} is not where it was set`);
    }
    expect([index.size, index.has(name(100_000)), index.get("")]).toEqual([50_000, false, undefined]);
  });

  it("gives a row that was renamed under its new name only", () => {
    const world = new World();
    for (const host of hosts) world.set(host);
    const row = world.truth.get(hosts[7]) ?? -1;
    world.index.delete(hosts[7]);
    world.index.set("other.example", row);
    expect([world.index.get(hosts[7]), world.index.get("other.example")]).toEqual([undefined, row]);
    expect([...world.index].filter(([, each]) => each === row)).toEqual([["other.example", row]]);
  });
});
