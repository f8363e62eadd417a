import { describe, expect, it } from "vitest";
import { keyOf, settleOf, startsOf, takeOf } from "../../../src/testing/store/operations.js";
import { Place } from "./place.js";

const second = 1_000_000;
const minute = 60 * second;
const host = keyOf({ windows: [50, 10 * minute, 1], rateCount: 1, ratePerUs: minute, burst: 50 });

/** Units in the window of the key. */
function used(place: Place): number {
  return place.look({ host })[0].windows[0];
}

describe("an operation that is sent again", () => {
  it("is answered as it was, to the last number, for a minute", () => {
    const place = new Place();
    const global = keyOf({ gapUs: 7 });
    const operation = takeOf({ asker: "a", sequence: 1 }, [host, global], { count: 5, horizonUs: 20, hasMore: true });
    const first = place.send(["host", "global"], operation);
    expect(first.starts).toHaveLength(3);
    expect(first.stop).toBeDefined();
    place.wait(minute - 1).start({ host });
    expect(place.send(["host", "global"], operation)).toEqual(first);
    expect(used(place)).toBe(4);
  });

  it("counts again after a minute, when nobody can have waited for it", () => {
    const place = new Place();
    const operation = takeOf({ asker: "a", sequence: 1 }, [host]);
    place.send(["host"], operation);
    place.wait(minute).start({ host });
    place.send(["host"], operation);
    expect(used(place)).toBe(3);
  });

  it("is carried out when the first took nothing", () => {
    const place = new Place();
    const gap = keyOf({ gapUs: second });
    place.start({ host: gap });
    const operation = takeOf({ asker: "a", sequence: 1 }, [gap]);
    expect(place.send(["host"], operation).starts).toHaveLength(0);
    expect(place.wait(second).send(["host"], operation).starts).toHaveLength(1);
  });

  it("is not carried out once the asker has sent the next", () => {
    const place = new Place();
    const first = takeOf({ asker: "a", sequence: 1 }, [host]);
    place.send(["host"], first);
    place.send(["host"], takeOf({ asker: "a", sequence: 2 }, [host]));
    place.send(["host"], first);
    expect(used(place)).toBe(2);
  });

  it("gives back or records once", () => {
    const place = new Place();
    const [taken] = place.take({ host }, { count: 3 }).starts;
    const settle = settleOf({ asker: "a", sequence: 1 }, taken, { isUnused: true });
    const replies = [1, 2, 3].map(() => place.send(["host"], settle));
    expect(replies[2]).toEqual(replies[0]);
    expect(used(place)).toBe(2);
    const record = { kind: "record", asker: "a", sequence: 2, keys: [host], agesUs: [0, 0] } as const;
    for (const again of [1, 2]) expect(place.send(["host"], record).nowUs * again).toBe(place.nowUs * again);
    expect(used(place)).toBe(4);
  });

  it("is another one from every asker, and from one without a name", () => {
    const place = new Place();
    for (const asker of ["a", "b", "a:1", "", ""]) place.send(["host"], takeOf({ asker, sequence: 1 }, [host]));
    expect(used(place)).toBe(5);
    const [taken] = startsOf(takeOf({ asker: "", sequence: 1 }, [host]), place.take({ host }).reply);
    for (const again of [1, 2]) {
      place.send(["host"], settleOf({ asker: "", sequence: 0 }, taken, { spent: again === 1 ? 1 : 0 }));
    }
    expect(used(place)).toBe(5);
  });

  it("is remembered for the last thousand askers", () => {
    const place = new Place();
    const free = keyOf({});
    for (let asker = 0; asker < 1_100; asker++)
      place.send(["host"], takeOf({ asker: `a${asker}`, sequence: 1 }, [free]));
    expect(place.state("host").memos).toHaveLength(1_000);
    place.send(["host"], takeOf({ asker: "a1099", sequence: 1 }, [free]));
    expect(place.look({ host: free })[0].starts).toBe(1_100);
  });
});
