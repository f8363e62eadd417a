import { expect, it } from "vitest";
import { keyOf } from "../../../src/testing/store/operations.js";
import { Place } from "./place.js";

const second = 1_000_000;
const strict = keyOf({ rateCount: 1, ratePerUs: 20 * second });
const loose = keyOf({ rateCount: 1, ratePerUs: second });

function leave(place: Place, ticket: string): void {
  place.send(["host"], { kind: "leave", ...place.from(), ticket });
}

it("the policy of the last process that leaves a key is in force no longer, and its starts still count", () => {
  const place = new Place();
  place.take({ host: strict }, { member: "a" });
  leave(place, "a");
  const { starts, stop, stricterAt } = place.take({ host: loose }, { member: "b" }).reply;
  expect(starts).toEqual([]);
  expect([stop?.kind, stricterAt]).toEqual(["rate", -1]);
  const waitUs = (stop?.readyUs ?? 0) - place.nowUs;
  // A debt under other numbers is rounded up.
  expect([waitUs >= second, waitUs <= second + 2]).toEqual([true, true]);
});

it.each([
  ["another process is there", { member: "b" }],
  ["somebody waits", { ticket: "t", member: "" }],
])("a policy stays in force while %s", (_, terms) => {
  const place = new Place();
  place.take({ host: strict }, { member: "a" });
  place.take({ host: strict }, terms);
  leave(place, "a");
  expect(place.take({ host: loose }).reply.stricterAt).toBe(0);
});

it("a policy stays in force when one leaves who was never there", () => {
  const place = new Place();
  place.take({ host: strict });
  leave(place, "a");
  expect(place.take({ host: loose }).reply.stricterAt).toBe(0);
});

it("who leaves is no longer counted", () => {
  const place = new Place();
  for (const member of ["a", "b", "c"]) place.take({ host: loose }, { member });
  leave(place, "b");
  expect(place.take({ host: loose }, { member: "a" }).reply.fleet).toBe(2);
});
