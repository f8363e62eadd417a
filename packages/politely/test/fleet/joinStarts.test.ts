import { describe, expect, it } from "vitest";
import type { FleetEntry } from "./fleetMember.js";
import { joinStarts } from "./joinStarts.js";

function entry(member: string, type: string, more: object): FleetEntry {
  return { type, member, machineUs: 0, ...more };
}

describe("joinStarts", () => {
  it("gives each start its own release, and none to one that was cut short", () => {
    const joined = joinStarts([
      entry("a", "start", { serial: 1, key: "x", startedUs: 10, token: 4 }),
      entry("b", "start", { serial: 1, key: "x", startedUs: 20, units: 3 }),
      entry("a", "paused", {}),
      entry("b", "release", { serial: 1, releasedUs: 25, unused: true }),
      entry("b", "start", { serial: 2, key: "y", startedUs: 30 }),
    ]);
    expect(joined).toMatchObject([
      { member: "a", key: "x", startedUs: 10, units: 1, token: 4 },
      { member: "b", key: "x", startedUs: 20, units: 3, releasedUs: 25, unused: true },
      { member: "b", key: "y", startedUs: 30 },
    ]);
    expect(joined.map(({ releasedUs }) => releasedUs)).toEqual([undefined, 25, undefined]);
  });

  it("refuses a log in which a start is released twice, or a release has no start", () => {
    const start = entry("a", "start", { serial: 1, key: "x", startedUs: 10 });
    const release = entry("a", "release", { serial: 1, releasedUs: 12 });
    expect(() => joinStarts([start, release, release])).toThrow("1 of a was released twice");
    expect(() => joinStarts([start, release, { ...release, member: "b" }])).toThrow("a release of 1 of b");
  });
});
