import { describe, expect, it } from "vitest";
import { decide } from "../../../src/shared/decide.js";
import { stateText } from "../../../src/shared/stateText.js";
import { keyOf, settleOf } from "../../../src/testing/store/operations.js";
import { Place } from "./place.js";

const minute = 60_000_000;
const host = keyOf({ windows: [50, 10 * minute, 1], quota: 50, calendar: "day UTC" });

/** Units in the window of the key. */
function used(place: Place): number {
  return place.look({ host })[0].windows[0];
}

/** So many others are answered at the key. Its state is written once: a thousand times would take a while. */
function crowd(place: Place, count: number): void {
  const state = place.state("host");
  for (let number = 0; number < count; number++) {
    const record = { kind: "record", asker: `other ${number}`, sequence: 1, keys: [host], agesUs: [] } as const;
    decide([state], record, place.nowUs);
  }
  place.put("host", stateText(state));
}

describe("what gives something back and is sent again", () => {
  it("gives nothing back when so many were answered since that nobody knows whether it did", () => {
    for (const terms of [{ isUnused: true }, { spent: 0 }]) {
      const place = new Place();
      const [taken] = place.take({ host }, { count: 3 }).starts;
      const settle = settleOf({ asker: "a", sequence: 1 }, taken, terms);
      place.send(["host"], settle);
      const { starts } = place.look({ host })[0];
      crowd(place, 1_000);
      place.send(["host"], { ...settle, isAgain: true });
      expect(used(place)).toBe(2);
      expect(place.state("host").tracks[0].quotaUsed).toBe(2);
      expect(place.look({ host })[0].starts).toBe(starts);
    }
  });

  it("frees its place all the same", () => {
    const place = new Place();
    const one = keyOf({ concurrency: 1 });
    const taken = place.start({ host: one });
    crowd(place, 1_000);
    place.send(["host"], { ...settleOf({ asker: "a", sequence: 1 }, taken, { isUnused: true }), isAgain: true });
    expect(place.state("host").places).toHaveLength(0);
  });

  it("gives back what is to be when it had not arrived, and all who were answered are remembered", () => {
    const place = new Place();
    const [taken] = place.take({ host }, { count: 3 }).starts;
    crowd(place, 998);
    place.send(["host"], { ...settleOf({ asker: "a", sequence: 1 }, taken, { isUnused: true }), isAgain: true });
    expect(used(place)).toBe(2);
  });

  it("does so again a minute after there were too many", () => {
    const place = new Place();
    const [, second] = place.take({ host }, { count: 3 }).starts;
    crowd(place, 1_100);
    place
      .wait(minute)
      .send(["host"], { ...settleOf({ asker: "a", sequence: 1 }, second, { isUnused: true }), isAgain: true });
    expect(used(place)).toBe(2);
  });
});
