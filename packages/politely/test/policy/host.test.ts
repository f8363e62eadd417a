import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isLocalhost, normaliseHost, plainHostEnd, withoutPort } from "../../src/policy/host.js";

describe("normaliseHost", () => {
  it.each([
    ["example.com", "example.com", undefined],
    ["EXAMPLE.com", "example.com", undefined],
    ["example.com.", "example.com", undefined],
    ["example.com:8443", "example.com", 8443],
    ["example.com:443", "example.com", 443],
    ["example.com:080", "example.com", 80],
    ["bücher.example", "xn--bcher-kva.example", undefined],
    ["BÜCHER.example", "xn--bcher-kva.example", undefined],
    ["日本。jp", "xn--wgv71a.jp", undefined],
    ["foo_bar.example.com", "foo_bar.example.com", undefined],
    ["company-ir", "company-ir", undefined],
    ["localhost", "localhost", undefined],
    ["127.0.0.1", "127.0.0.1", undefined],
    ["127.1", "127.0.0.1", undefined],
    ["0x7f.1", "127.0.0.1", undefined],
    ["2130706433", "127.0.0.1", undefined],
    ["127.0.0.1.", "127.0.0.1", undefined],
    ["[::1]", "[::1]", undefined],
    ["::1", "[::1]", undefined],
    ["[0:0:0:0:0:0:0:1]:3000", "[::1]", 3000],
    ["[2001:DB8::1]", "[2001:db8::1]", undefined],
    [`${"a".repeat(63)}.org`, `${"a".repeat(63)}.org`, undefined],
  ])("brings %j to %j with port %s", (text, host, port) => {
    expect(normaliseHost(text)).toEqual({ host, port });
  });

  it.each([
    ["", "must not be empty"],
    ["a b", "blanks"],
    ["exa mple", "blanks"],
    [" example.com", "blanks"],
    ["exam\tple.com", "blanks"],
    ["exam\u0000ple.com", "control characters"],
    ["http://", "without a scheme"],
    ["https://example.com", "without a scheme"],
    ["foo/bar", "https:// in front"],
    ["example.com/path", "https:// in front"],
    ["example.com?x", "https:// in front"],
    ["example.com#x", "https:// in front"],
    ["a\\b", "without a path"],
    ["user@example.com", "without a user name"],
    ["user:secret@example.com", "without a user name"],
    [".", "empty part"],
    ["..", "empty part"],
    ["a..b", "empty part"],
    [".example.com", "empty part"],
    ["example.com..", "empty part"],
    [`${"a".repeat(64)}.org`, "at most 63"],
    [`${"abcdefg.".repeat(32)}org`, "at most 253"],
    ["x".repeat(10_000), "at most 2048"],
    ["example.com:", "port"],
    ["example.com:http", "port"],
    ["example.com:65536", "port"],
    ["example.com:-1", "port"],
    ["[::1]:x", "port"],
    [":8080", "host name"],
    ["[::1", "must be a host name"],
    ["[::g]", "must be a host name"],
    ["1.2.3.4.5", "must be a host name"],
    ["256.256.256.256", "must be a host name"],
    ["1:2:3", "must be a host name"],
    ["xn--a-é", "must be a host name"],
    ["a<b", "must be a host name"],
    ["%zz", "must be a host name"],
  ])("refuses %j because it %s", (text, reason) => {
    expect(() => normaliseHost(text)).toThrow(TypeError);
    expect(() => normaliseHost(text)).toThrow(reason);
  });

  it("keeps its messages short however long the value is", () => {
    expect(() => normaliseHost("x".repeat(1_000_000))).toThrow(/^.{0,200}$/);
  });

  it("changes nothing when it is given its own answer", () => {
    fc.assert(
      fc.property(fc.oneof(fc.domain(), fc.ipV4(), fc.ipV4Extended(), fc.ipV6(), fc.string()), (text) => {
        let host: string;
        try {
          host = normaliseHost(text).host;
        } catch {
          return;
        }
        expect(normaliseHost(host)).toEqual({ host, port: undefined });
      }),
    );
  });
});

describe("plainHostEnd", () => {
  it.each([
    ["example.com", 11],
    ["example.com/a.b", 11],
    ["example.com:80", 11],
    ["example.com?x", 11],
    ["example.com#x", 11],
    ["3com.example", 12],
    ["", -1],
    ["/", -1],
    ["Example.com", -1],
    ["example.com.", -1],
    ["a..b", -1],
    [".a", -1],
    ["1.2.3.4", -1],
    ["example.0x7f", -1],
    ["xn--bcher-kva.example", -1],
    ["a.xn--p1ai", -1],
    ["user@host", -1],
    ["a\\b", -1],
    ["a%62", -1],
    ["a_b.org", -1],
    [`${"a".repeat(64)}.org`, -1],
    ["abcdefg.".repeat(32).concat("org"), -1],
  ])("cuts %j at %d", (text, end) => {
    expect(plainHostEnd(text, 0)).toBe(end);
  });
});

describe("isLocalhost", () => {
  it.each([
    ["localhost", true],
    ["app.localhost", true],
    ["127.0.0.1", true],
    ["127.255.1.2", true],
    ["[::1]", true],
    ["[::ffff:7f00:1]", true],
    ["[::ffff:7fff:fffe]", true],
    ["[::ffff:7f01:0]", true],
    ["0.0.0.0", true],
    ["[::]", true],
    ["[::ffff:0:0]", true],
    ["localhost.example.com", false],
    ["notlocalhost", false],
    ["127.example.com", false],
    ["128.0.0.1", false],
    ["[::2]", false],
    ["[::7f00:1]", false],
    ["[::ffff:8000:1]", false],
    ["[::ffff:7f0:1]", false],
    ["[::ffff:7f:0:1]", false],
    ["[::ffff:0:1]", false],
    ["[2001:db8::ffff:7f00:1]", false],
    ["0.0.0.1", false],
    ["10.0.0.0", false],
  ])("%s: %s", (host, answer) => {
    expect(isLocalhost(host)).toBe(answer);
  });

  it.each([
    "LOCALHOST.",
    "app.localhost.",
    "127.1",
    "0x7f000001",
    "[0:0:0:0:0:0:0:1]",
    "::ffff:127.0.0.1",
    "[::ffff:127.255.255.254]",
    "[0:0:0:0:0:FFFF:7F00:0001]",
    "0",
    "[::ffff:0.0.0.0]",
    "::",
  ])("knows this machine when it is written %s", (text) => {
    expect(isLocalhost(normaliseHost(text).host)).toBe(true);
  });
});

describe("withoutPort", () => {
  it.each([
    ["example.com:8443", "example.com"],
    ["example.com", "example.com"],
    ["[::1]", "[::1]"],
    ["[::1]:3000", "[::1]"],
    ["team:blue", "team:blue"],
  ])("%s gives %s", (key, host) => {
    expect(withoutPort(key)).toBe(host);
  });
});
