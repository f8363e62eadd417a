import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keepForUs } from "../../../src/shared/expiry.js";
import type { KeyState } from "../../../src/shared/keyState.js";
import type { TakeKey } from "../../../src/shared/operation.js";
import { keyOf } from "../../../src/testing/store/operations.js";
import { anySpec } from "../../laws/arbitraries.js";
import { seeded } from "../../laws/seeded.js";
import { type Act, Actor, anyAct } from "./acts.js";
import { sharedKey } from "./history.js";
import { Place } from "./place.js";

const second = 1_000_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

describe("a key that has been kept for as long as it asks for", () => {
  it("can be forgotten and nobody notices", () => {
    const world = fc.record({
      specs: fc.tuple(anySpec(), anySpec()),
      before: fc.array(anyAct(2), { minLength: 3, maxLength: 40 }),
      after: fc.array(anyAct(2), { minLength: 3, maxLength: 25 }),
    });
    fc.assert(
      fc.property(world, ({ specs, before, after }) => {
        const rules = specs.map((spec) => sharedKey(spec, 1, 0));
        const place = new Place();
        place.isElephant = true;
        new Actor(place, rules).play(before);
        const state = place.state("host");
        place.nowUs = Math.max(place.nowUs, state.seenUs + keepForUs(state, state.seenUs));
        const fresh = new Place();
        fresh.isElephant = true;
        fresh.nowUs = place.nowUs;
        const [kept, forgotten] = [place, fresh].map(
          (each) => new Actor(each, rules).play(known(after, state, rules)).replies,
        );
        expect(kept).toEqual(forgotten);
      }),
      seeded(300),
    );
  });

  /** The same acts by processes that the key knows: of a policy that is new to it, or a new gap beyond it, it cannot know anything. */
  function known(acts: readonly Act[], { tracks, slowUs }: KeyState, rules: readonly TakeKey[]): Act[] {
    const policies = rules.flatMap(({ ruleId }, index) =>
      tracks.some((track) => track.ruleId === ruleId) ? [index] : [],
    );
    return acts.map((act) => {
      if (tracks.length === 0 || (act.act !== "take" && act.act !== "record")) return act;
      const policy = policies[act.policy % policies.length];
      return act.act === "take" ? { ...act, policy, slowUs: Math.min(act.slowUs, slowUs) } : { ...act, policy };
    });
  }

  it("is kept for a minute at least, and for 400 days at most", () => {
    const place = new Place();
    place.start({ host: keyOf({}) });
    expect(keepForUs(place.state("host"), place.nowUs)).toBeGreaterThanOrEqual(minute);
    place.send(["host"], { kind: "set", ...place.from(), pauseUs: Number.POSITIVE_INFINITY, reset: "nothing" });
    expect(keepForUs(place.state("host"), place.nowUs)).toBe(400 * day);
  });

  it("is kept until a gap or window from the answer has passed after the last place lapses", () => {
    const place = new Place();
    place.start(
      { host: keyOf({ windows: [1, hour, 1], gapUs: 2 * hour, fromAnswer: true }) },
      { leaseUs: 30 * second },
    );
    expect(keepForUs(place.state("host"), place.nowUs)).toBeGreaterThan(2 * hour);
  });

  it("is kept for the longest gap that a process keeps beyond its rule", () => {
    const place = new Place();
    place.start({ host: keyOf({}, { slowUs: hour }) });
    place.start({ host: keyOf({}) });
    expect(keepForUs(place.state("host"), place.nowUs)).toBeGreaterThan(hour);
  });

  it("is kept for as long as a policy or a member of the fleet counts", () => {
    const place = new Place();
    place.start({ host: keyOf({}) }, { leaseUs: hour });
    expect(keepForUs(place.state("host"), place.nowUs)).toBeGreaterThan(hour);
    const other = new Place();
    other.start({ host: keyOf({}) }, { leaseUs: 1, member: "north" });
    expect(keepForUs(other.state("host"), other.nowUs)).toBeGreaterThan(5 * minute);
  });
});
