import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutPlainHost, normaliseHost } from "../../src/policy/host.js";
import { createResolver } from "../../src/policy/target.js";
import type { Target } from "../../src/types.js";

const resolve = createResolver({ groupBy: undefined, portKeys: new Set() });
const keyOf = (target: unknown): string => resolve(target as Target).key;

describe("the key of a target", () => {
  it.each([
    ["example.com", "example.com"],
    ["Example.COM.", "example.com"],
    ["example.com:8443", "example.com"],
    ["https://example.com/a?b#c", "example.com"],
    ["https://example.com", "example.com"],
    ["https://example.com:8443/a", "example.com"],
    ["HTTPS://EXAMPLE.com/", "example.com"],
    ["https://user:secret@example.com/", "example.com"],
    ["https://user:123/@example.com/", "user"],
    ["https://example.com\\@other.org/", "example.com"],
    ["https://bücher.example/", "xn--bcher-kva.example"],
    ["https://example.com./", "example.com"],
    ["http://127.1/", "127.0.0.1"],
    ["http://[::1]:3000/", "[::1]"],
    ["ws://example.com/socket", "example.com"],
    ["ftp://example.com/file", "example.com"],
    ["redis://Example.com:6379/0", "example.com"],
    ["git+ssh://git@Example.com/x", "example.com"],
    [new URL("https://Example.com/x"), "example.com"],
    [{ url: "https://example.com/x" }, "example.com"],
    [{ url: new URL("https://example.com/x") }, "example.com"],
    [{ host: "Example.com:99" }, "example.com"],
    [{ href: "https://example.com/x", hostname: "example.com", port: "", protocol: "https:" }, "example.com"],
  ])("of %s is %s", (target, key) => {
    expect(keyOf(target)).toBe(key);
  });

  it.each([
    ["", "must not be empty"],
    ["a b", "blanks"],
    ["example.com/path", "https:// in front"],
    ["example.com/?next=https://other.org", "Write https:// in front"],
    ["//example.com/path", "https:// in front"],
    ["http://", "valid URL"],
    ["https://exa mple/", "valid URL"],
    ["https://example.com:99999/", "valid URL"],
    ["https://example.com:abc/", "valid URL"],
    ["https://a..b/", "empty part"],
    [`https://${"a".repeat(64)}.org/`, "at most 63"],
    ["mailto:someone@example.com", "user name"],
    ["file:///etc/hosts", "with a host"],
    ["data:text/plain,https://example.com", "with a host"],
    [new URL("mailto:someone@example.com"), "with a host"],
    [new URL("data:,x"), "with a host"],
    [{ url: "example.com" }, "valid URL"],
    [{ url: 5 }, "target.url must be a URL; got 5"],
    [{ url: null }, "target.url must be a URL"],
    [{ host: "https://example.com" }, "target.host must be a host name without a scheme"],
    [{ host: 5 }, "target.host must be a host name; got 5"],
    [{ url: "https://example.com", host: "example.com" }, "url or host, not both"],
    [{}, "must have url or host"],
    [[], "got an empty list"],
    [["example.com"], "an object with url or host; got a list of 1"],
    [{ host: "example.com", scope: ["proxy:berlin"] }, 'must not have a field "scope"; did you mean "scopes"?'],
    [{ URL: "https://example.com/" }, 'must not have a field "URL"; did you mean "url"?'],
    [{ host: "example.com", zebra: 1 }, 'field "zebra"; known are url, host, intent, scopes'],
    [undefined, "got undefined"],
    [null, "got null"],
    [5, "got 5"],
  ])("%s is refused: %s", (target, reason) => {
    expect(() => keyOf(target)).toThrow(TypeError);
    expect(() => keyOf(target)).toThrow(reason);
  });

  it("holds the port only where a rule of the policy names it", () => {
    const portKeys = new Set(["example.com:8443", "x.org:443", "[::1]:3000"]);
    const withPorts = createResolver({ groupBy: undefined, portKeys });
    const keys = [
      "example.com:8443",
      "https://example.com:8443/a",
      "https://example.com/a",
      "example.com",
      "https://x.org/",
      "https://x.org:443/",
      "http://x.org/",
      "wss://x.org/",
      "x.org",
      "http://[::1]:3000/",
      "::1",
    ].map((target) => withPorts(target).key);
    expect(keys).toEqual([
      "example.com:8443",
      "example.com:8443",
      "example.com",
      "example.com",
      "x.org:443",
      "x.org:443",
      "x.org",
      "x.org:443",
      "x.org",
      "[::1]:3000",
      "[::1]",
    ]);
  });
});

describe("intent and scopes of a target", () => {
  it("are passed on", () => {
    const target = { host: "example.com", intent: "search", scopes: ["proxy:berlin", "key:abc"] };
    expect(resolve(target)).toEqual({ key: "example.com", intent: "search", scopes: ["proxy:berlin", "key:abc"] });
    expect(resolve("example.com")).toEqual({ key: "example.com", intent: undefined, scopes: [] });
  });

  it.each([
    [{ intent: "" }, "target.intent"],
    [{ intent: 5 }, "target.intent"],
    [{ intent: "x".repeat(201) }, "target.intent"],
    [{ intent: "a\nb" }, 'none of them a control character; got "a\\nb"'],
    [{ intent: "\u0000" }, "target.intent"],
    [{ intent: "a\u007f" }, "target.intent"],
    [
      { scopes: ["proxy:\n"] },
      "target.scopes must hold texts of 1 to 200 characters, none of them a control character",
    ],
    [{ scopes: ["a\u001fb"] }, "target.scopes must hold"],
    [{ scopes: "proxy" }, "target.scopes must be a list"],
    [{ scopes: Array.from({ length: 17 }, (_, index) => `s${index}`) }, "at most 16"],
    [{ scopes: [""] }, "target.scopes must hold"],
    [{ scopes: [5] }, "target.scopes must hold"],
    [{ scopes: ["a", "a"] }, "twice"],
    [{ scopes: ["global"] }, "reserved"],
  ])("are refused when wrong: %j", (part, reason) => {
    const target = { host: "example.com", ...part } as Target;
    expect(() => resolve(target)).toThrow(TypeError);
    expect(() => resolve(target)).toThrow(reason);
  });
});

describe("groupBy", () => {
  it("makes the key from the URL, also for a bare host", () => {
    const seen: string[] = [];
    const grouped = createResolver({
      groupBy: (url) => {
        seen.push(url.href);
        return "everything";
      },
      portKeys: new Set(),
    });
    for (const target of ["https://example.com/a", "example.com", "Example.com:81", new URL("https://x.org/")]) {
      expect(grouped(target).key).toBe("everything");
    }
    expect(seen).toEqual(["https://example.com/a", "http://example.com/", "http://example.com:81/", "https://x.org/"]);
  });

  it.each(["", undefined, 5, null, "a\nb", "\u0000", "x\u007f"])("is refused when it returns %j", (key) => {
    const grouped = createResolver({ groupBy: () => key as string, portKeys: new Set() });
    expect(() => grouped("example.com")).toThrow(TypeError);
    expect(() => grouped("example.com")).toThrow("groupBy must return");
  });
});

describe("the short cut for plain URLs", () => {
  const label = fc.oneof(
    fc.stringMatching(/^[a-z0-9-]{1,6}$/),
    fc.constantFrom(
      "xn--bcher-kva",
      "xn--a",
      "0x7f",
      "1",
      "127",
      "",
      "A",
      "ü",
      "a_b",
      "%61",
      "a".repeat(63),
      "a".repeat(64),
    ),
  );
  const port = fc.oneof(
    fc.constantFrom("", ":", ":80", ":443", ":00080", ":65535", ":65536", ":123456", ":x", ":8\t0", ":80@x.org"),
    fc.nat(70_000).map((number) => `:${number}`),
  );
  const rest = fc.oneof(fc.constantFrom("", "/", "?", "#", "\\x", "@y.org/", " ", "\n", "/a@b", "?a:b"), fc.webPath());
  const url = fc
    .tuple(
      fc.constantFrom("https://", "http://", "HTTPS://", "ws://"),
      fc.array(label, { minLength: 1, maxLength: 5 }),
      port,
      rest,
    )
    .map(([scheme, labels, portText, path]) => scheme + labels.join(".") + portText + path);

  it("agrees with a URL parser wherever it is taken", () => {
    let takenCount = 0;
    fc.assert(
      fc.property(fc.oneof(url, fc.webUrl()), (text) => {
        const cut = cutPlainHost(text);
        if (cut === undefined) return;
        takenCount++;
        const parsed = new URL(text);
        const { host } = normaliseHost(parsed.hostname);
        const port = parsed.port === "" ? { "http:": 80, "https:": 443 }[parsed.protocol] : Number(parsed.port);
        expect(cut).toEqual({ host, port });
      }),
      { numRuns: 5_000 },
    );
    expect(takenCount).toBeGreaterThan(500);
  });

  it("gives the key that the same URL as an object gives, or both are refused", () => {
    const outcome = (read: () => string): string => {
      try {
        return read();
      } catch {
        return "refused";
      }
    };
    fc.assert(
      fc.property(url, (text) => {
        expect(outcome(() => keyOf(text))).toBe(outcome(() => keyOf(new URL(text))));
      }),
      { numRuns: 5_000 },
    );
  });
});
