import type { PolicyInput } from "politely";
import { describe, expect, it } from "vitest";
import { Keys } from "../../src/get/keys.js";

const rows: readonly [string, PolicyInput, string, string][] = [
  ["an entry", { hosts: { "example.com": { rate: "2/s" } } }, "example.com", "2/s"],
  ["an entry in capitals", { hosts: { "Example.com": { rate: "2/s" } } }, "example.com", "2/s"],
  ["an entry for subdomains in capitals", { hosts: { "*.Example.com": { rate: "2/s" } } }, "a.example.com", "2/s"],
  ["an entry that is not in ASCII", { hosts: { "bücher.de": { rate: "2/s" } } }, "xn--bcher-kva.de", "2/s"],
  ["no entry", { default: { concurrency: 3 } }, "example.org", "concurrency 3"],
  ["no entry and no default", {}, "example.org", "1/s"],
  ["an entry that is off", { hosts: { "example.com": { enabled: false } } }, "example.com", "no limit"],
  ["this machine", {}, "localhost", "no limit"],
];

describe("the limits of a key in words", () => {
  it.each(rows)("are those of %s", (_, policy, key, text) => {
    expect(new Keys(policy).words(key)).toMatchObject({ text, isLimited: text !== "no limit" });
  });

  it("are those of a preset's own entry", () => {
    const { text, isLimited } = new Keys({ presets: ["collector"] }).words("www.sec.gov");
    expect([isLimited, text === "no limit"]).toEqual([true, false]);
  });
});
