import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { byDomain, registrableDomain } from "../../../src/http/domains/index.js";
import cases from "../../fixtures/registrable-domain.json" with { type: "json" };
import { seeded } from "../../laws/seeded.js";

function ascii(host: string | null): string | null {
  return host === null ? null : new URL(`http://${host}/`).hostname;
}

describe("registrableDomain", () => {
  it.each(cases)("of $host is $expect: $source", ({ host, expect: domain }) => {
    expect(registrableDomain(host)).toBe(ascii(domain));
  });

  it.each([
    ["WWW.Example.CO.UK", "example.co.uk"],
    ["www.example.com.", "example.com"],
    ["www.example.com:8443", "example.com"],
    ["https://user:word@www.example.com:8443/a?b#c", "example.com"],
    ["a.b.github.io", "b.github.io"],
    ["_dmarc.example.com", "example.com"],
    ["münchen.example.de", "example.de"],
    ["WWW.MÜNCHEN.de", "xn--mnchen-3ya.de"],
    ["www.münchen.de.", "xn--mnchen-3ya.de"],
    ["a.b.not-a-known-suffix", "b.not-a-known-suffix"],
  ])("of %j is %s", (host, domain) => {
    expect(registrableDomain(host)).toBe(domain);
  });

  it.each([
    "",
    ".",
    "..",
    "com",
    "co.uk",
    "github.io",
    "localhost",
    ".example.com",
    "example..com",
    "example.com..",
    "exa mple.com",
    "example.com/a",
    "user@example.com",
    "192.168.0.1",
    "192.168.0.1:80",
    "0x7f.1",
    "2130706433",
    "[2001:db8::1]",
    "[2001:db8::1]:443",
    "2001:db8::1",
    "https://",
    "https://[::1]/",
    `${"a".repeat(64)}.com`,
    `${"a.".repeat(130)}com`,
  ])("of %j is null", (host) => {
    expect(registrableDomain(host)).toBeNull();
  });

  it.each([
    ["mtls.run.app", null],
    ["a.mtls.run.app", null],
    ["b.a.mtls.run.app", "b.a.mtls.run.app"],
    ["b.a.run.app", "b.a.run.app"],
    ["run.app", "run.app"],
    ["r.cloud.int.apple", null],
    ["us-west-1.r.cloud.int.apple", null],
    ["ex.futurecms.at", null],
    ["svc.firenet.ch", null],
    ["www.ck", "www.ck"],
    ["a.www.ck", "www.ck"],
    ["city.kawasaki.jp", "city.kawasaki.jp"],
  ])("of %j is %s, where the list has a wildcard within a wildcard or an exception", (host, domain) => {
    expect(registrableDomain(host)).toBe(domain);
  });

  it("refuses what is no text", () => {
    for (const host of [undefined, null, 5, new URL("https://example.com")]) {
      expect(() => registrableDomain(host as unknown as string)).toThrow("host must be a text; got");
    }
  });

  it("never throws on a text, and gives the end of the host, which is its own domain", () => {
    const label = fc.constantFrom(
      "a",
      "www",
      "Example",
      "co",
      "uk",
      "com",
      "jp",
      "kobe",
      "city",
      "github",
      "io",
      "ck",
      "mm",
      "食狮",
      "-",
      "",
    );
    const host = fc.oneof(
      fc.array(label, { maxLength: 6 }).map((labels) => labels.join(".")),
      fc.string(),
      fc.domain(),
    );
    fc.assert(
      fc.property(host, (text) => {
        const domain = registrableDomain(text);
        if (domain === null) return;
        expect(registrableDomain(domain)).toBe(domain);
        expect(domain).toMatch(/^[a-z0-9._-]+\.[a-z0-9_-]+$/);
        expect(`.${new URL(`http://${text}/`).hostname.replace(/\.$/, "")}`.endsWith(`.${domain}`)).toBe(true);
      }),
      seeded(3_000),
    );
  });
});

describe("byDomain", () => {
  it.each([
    ["https://www.example.co.uk/a", "example.co.uk"],
    ["https://example.co.uk:8443/", "example.co.uk"],
    ["https://API.Example.co.uk./", "example.co.uk"],
    ["https://www.münchen.de/", "xn--mnchen-3ya.de"],
    ["foo://WWW.Example.org/a", "example.org"],
    ["http://127.0.0.1:8080/", "127.0.0.1"],
    ["http://[::1]:8080/", "[::1]"],
    ["http://localhost:3000/", "localhost"],
    ["http://intranet./", "intranet"],
    ["https://github.io/", "github.io"],
    ["https://jay.github.io/", "jay.github.io"],
  ])("puts %s under %s", (url, key) => {
    expect(byDomain(new URL(url))).toBe(key);
  });
});
