import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.js";
import { freshKey, type KeyState } from "../../../src/shared/keyState.js";
import { readState, STATE_VERSION, stateText } from "../../../src/shared/stateText.js";
import { logPairs } from "../../../src/shared/windowLog.js";
import { anySpec } from "../../laws/arbitraries.js";
import { seeded } from "../../laws/seeded.js";
import { Actor, anyAct } from "./acts.js";
import { sharedKey } from "./history.js";
import { Place } from "./place.js";
import { stateOfEverything } from "./stateOfEverything.js";

/** A state in which logs can be compared: as pairs. */
function plain(state: KeyState): unknown {
  const { headroom } = state;
  return {
    ...state,
    headroom: headroom && { ...headroom, holdUntilUs: Math.max(0, headroom.holdUntilUs) },
    tracks: state.tracks.map((track) => ({ ...track, logs: track.logs.map(logPairs) })),
  };
}

describe("a key's state as text", () => {
  it("comes back as it was", () => {
    const specs = fc.tuple(anySpec({ quota: true }), anySpec());
    fc.assert(
      fc.property(specs, fc.array(anyAct(2), { minLength: 3, maxLength: 40 }), (both, acts) => {
        const place = new Place();
        new Actor(
          place,
          both.map((spec) => sharedKey(spec, 1, place.nowUs)),
        ).play(acts);
        const text = stateText(place.state("host"));
        const state = readState(text, "host");
        expect(plain(state)).toEqual(plain(place.state("host")));
        expect(stateText(state)).toBe(text);
      }),
      seeded(200),
    );
  });

  it("comes back with everything in it", () => {
    const state = stateOfEverything();
    expect(plain(readState(stateText(state), "host"))).toEqual(plain(state));
    for (const [name, value] of Object.entries(freshKey(0))) {
      expect([name, state[name as keyof KeyState]]).not.toEqual([name, value]);
    }
  });

  it("is read for ever once a version has been published: version 1", () => {
    const text = readFileSync(new URL("state-v1.txt", import.meta.url), "utf8");
    // Only later it was kept how long places are held, and what those in line want.
    const everything = stateOfEverything();
    const then = { ...everything, heldUs: 0, line: everything.line.slice(0, 1) };
    expect(plain(readState(text, "host"))).toEqual(plain(then));
  });

  it("of a newer version is refused, with what to do", () => {
    const [, ...rest] = JSON.parse(stateText(freshKey(5))) as unknown[];
    const newer = JSON.stringify([STATE_VERSION + 1, ...rest]);
    expect(() => readState(newer, "host x.org")).toThrow(StoreError);
    expect(() => readState(newer, "host x.org")).toThrow(/host x\.org.*version 2.*reads up to 1.*Update politely/);
  });

  const whole = stateText(stateOfEverything());
  it.each([
    "",
    "hello",
    "{}",
    "null",
    "7",
    "[]",
    "[1]",
    "[0]",
    "[1,2,3]",
    '["lease",1,"a","b",5,6,7]',
    '[1,[1,2,3],4,0,"",0,[],[],[],[],[]]',
    '[1,[1,2,3,4,5,6,7,null],4,0,"",0,[],[],[],[],[]]',
    whole.slice(0, -1),
    whole.slice(1),
    JSON.stringify({ state: whole }),
  ])("is told from %j, by name", (other) => {
    expect(() => readState(other, "host x.org")).toThrow(StoreError);
    expect(() => readState(other, "host x.org")).toThrow(/"host x\.org"/);
  });
});
