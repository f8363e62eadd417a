import { politely } from "politely";
import { expect, it } from "vitest";
import { limitsInForce } from "../../../page/src/view/limitFields.js";

it.each([
  ["X.Org", "x.org"],
  ["x.org.", "x.org"],
  ["münchen.de", "münchen.de"],
  ["*.Wild.ORG", "a.wild.org"],
  ["Ports.org:8080", "ports.org:8080"],
  ["[::1]", "[::1]"],
])("finds what the policy says of a host under %s, as the file writes it", (written, host) => {
  const policy = { default: { rate: "9/s" }, hosts: { [written]: { rate: "1/h" } }, localhost: "limited" } as const;
  const { key, origin } = politely(policy).explain(host);
  expect(limitsInForce(policy, key, origin)).toEqual({ rate: "1/h" });
});

it("prefers what was edited, whatever the limits came from before, and knows the default", () => {
  const hosts = { "*.org": { rate: "1/h" }, "a.org": { rate: "2/h" } } as const;
  expect(limitsInForce({ hosts }, "a.org", "hosts.*.org")).toEqual({ rate: "2/h" });
  expect(limitsInForce({ hosts }, "b.com", "default")).toEqual({ rate: "1/s" });
  expect(limitsInForce({ hosts, default: { rate: "3/s" } }, "b.com", "default")).toEqual({ rate: "3/s" });
  expect(limitsInForce({ hosts }, "arxiv.org", "presets.arxiv")).toEqual({});
});
