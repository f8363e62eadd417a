import { describe, expect, it } from "vitest";
import type { Target } from "../../src/index.js";
import { failure, rig } from "../verbs/support.js";

const bad: readonly (readonly [string, unknown])[] = [
  ["an empty string", ""],
  ["spaces", "   "],
  ["a URL without a host", "http://"],
  ["a file URL", "file:///etc/hosts"],
  ["a mail address as a URL", "mailto:me@example.org"],
  ["a data URL", "data:text/plain,hello"],
  ["a URL object without a host", new URL("data:text/plain,hello")],
  ["a host with a space", "exa mple.com"],
  ["a URL whose host has a space", "http://exa mple.com/"],
  ["a bracket that is not closed", "[::1"],
  ["a port that is too large", "example.com:99999"],
  ["a port that is no number", "example.com:http"],
  ["a label that is empty", "a..example.com"],
  ["only a dot", "."],
  ["a name longer than DNS allows", `${"a".repeat(300)}.org`],
  ["a wildcard", "*.example.com"],
  ["null", null],
  ["undefined", undefined],
  ["a number", 42],
  ["true", true],
  ["an array", ["example.com"]],
  ["a function", () => "example.com"],
  ["an empty object", {}],
  ["an object with an empty host", { host: "" }],
  ["an object with a host that is a number", { host: 42 }],
  ["an object with a URL that is none", { url: "not a url at all" }],
  ["an object with an intent that is a number", { host: "example.com", intent: 42 }],
  ["an object with an empty intent", { host: "example.com", intent: "" }],
  ["an object with scopes that are a string", { host: "example.com", scopes: "proxy:berlin" }],
  ["an object with a scope that is a number", { host: "example.com", scopes: [42] }],
  ["an object with a control character in its intent", { host: "example.com", intent: "a\nb" }],
  ["an object with a control character in a scope", { host: "example.com", scopes: ["proxy:\u0000"] }],
  ["an object with a field nobody knows", { host: "example.com", scope: ["proxy:berlin"] }],
  ["an object with a scope the policy does not know", { host: "example.com", scopes: ["proxy:berlin"] }],
];

describe("a target that makes no sense", () => {
  it.each(bad)("%s: acquire rejects with a TypeError and does not throw", async (_name, value) => {
    const { clock, limiter } = rig();
    const promise = limiter.acquire(value as Target);
    expect(promise).toBeInstanceOf(Promise);
    const error = await failure(promise);
    expect(error).toBeInstanceOf(TypeError);
    expect((error as TypeError).message.length).toBeGreaterThan(10);
    expect(clock.pendingTimers).toBe(0);
    expect(limiter.stats()).toEqual([]);
  });

  it.each(bad)("%s: run rejects and does not call the task", async (_name, value) => {
    const { limiter } = rig();
    let calls = 0;
    expect(await failure(limiter.run(value as Target, () => (calls += 1)))).toBeInstanceOf(TypeError);
    expect(calls).toBe(0);
  });

  it.each(bad)("%s: the verbs that answer at once throw a TypeError", (_name, value) => {
    const { limiter } = rig();
    const target = value as Target;
    expect(() => limiter.tryAcquire(target)).toThrow(TypeError);
    expect(() => limiter.check(target)).toThrow(TypeError);
    expect(() => limiter.explain(target)).toThrow(TypeError);
    expect(() => limiter.record(target, "success")).toThrow(TypeError);
    expect(limiter.stats()).toEqual([]);
  });

  it.each(["exa mple.com", "example.com:99999", "file:///etc/hosts"])(
    "the message names the value %j",
    async (target) => {
      const { limiter } = rig();
      expect(String(await failure(limiter.acquire(target)))).toContain(target);
    },
  );

  it.each(["", "exa mple.com", 42, null])(
    "%j is refused by the verbs for which a target may be left out, too",
    (value) => {
      const { limiter } = rig();
      const target = value as Target;
      expect(() => limiter.pause(target)).toThrow(TypeError);
      expect(() => limiter.resume(target)).toThrow(TypeError);
      expect(() => limiter.cancelWaiting(target)).toThrow(TypeError);
      expect(() => limiter.reset(target)).toThrow(TypeError);
      expect(() => limiter.stats(target)).toThrow(TypeError);
      expect(limiter.check("example.com").proceed).toBe(true);
    },
  );

  it("is refused by idle as a rejection", async () => {
    const { limiter } = rig();
    expect(await failure(limiter.idle(""))).toBeInstanceOf(TypeError);
  });

  it("that only groupBy cannot place rejects with what groupBy threw, and takes nothing", async () => {
    const thrown = new Error("no group");
    const { clock, limiter } = rig({
      default: { minDelay: "1s" },
      groupBy: (url) => {
        if (url.hostname === "odd.org") throw thrown;
        return url.hostname;
      },
    });
    expect(await failure(limiter.acquire("https://odd.org/"))).toBe(thrown);
    expect((await limiter.acquire("https://even.org/")).waitedMs).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it.each([undefined, "", 42, "a\nb"])("a groupBy that gives %j is a TypeError", async (value) => {
    const { limiter } = rig({ groupBy: () => value as string });
    expect(await failure(limiter.acquire("https://x.org/"))).toBeInstanceOf(TypeError);
  });
});

describe("a target that looks odd but is fine", () => {
  it.each([
    ["a single label", "intranet", "intranet"],
    ["an address", "http://192.0.2.7:8080/", "192.0.2.7"],
    ["a name with an underscore", "my_service.internal", "my_service.internal"],
    ["a name that begins with a digit", "1x.org", "1x.org"],
    ["a name that an object has anyway", "constructor", "constructor"],
    ["another one", "__proto__", "__proto__"],
    ["websocket URLs", "wss://stream.example.com/feed", "stream.example.com"],
  ])("%s", async (_name, target, key) => {
    const { limiter } = rig();
    expect((await limiter.acquire(target)).key).toBe(key);
    expect(limiter.stats(target)?.totalRequests).toBe(1);
  });
});
