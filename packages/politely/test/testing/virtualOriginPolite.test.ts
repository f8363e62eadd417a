import { describe, expect, it } from "vitest";
import { politely } from "../../src/index.js";
import { VirtualClock, VirtualOrigin } from "../../src/testing/index.js";

/** A limiter that sends to a virtual site, where `/old` has moved to `/new`. */
function world() {
  const clock = new VirtualClock();
  const origin = new VirtualOrigin({
    clock,
    pages: { "/old": { status: 302, headers: { location: "/new" } }, "/new": { body: "hello" } },
  });
  const polite = politely({ default: { concurrency: 1 } }, { clock, fetch: origin.fetch });
  return { clock, polite };
}

describe("a response of a virtual site, through polite.fetch", () => {
  it("says where it came from, also after a redirect", async () => {
    const { polite } = world();
    const direct = await polite.fetch("https://a.example/new#part");
    expect([direct.url, direct.redirected, direct.type]).toEqual(["https://a.example/new", false, "basic"]);
    await direct.text();
    const moved = await polite.fetch("https://a.example/old");
    expect([moved.url, moved.redirected, moved.type]).toEqual(["https://a.example/new", true, "basic"]);
    expect(await moved.text()).toBe("hello");
  });

  it.each([
    ["at once", 0],
    ["a turn later", 10],
  ])("can be cloned %s, and both have the body and the place", async (_when, waitMs) => {
    const { clock, polite } = world();
    const response = await polite.fetch("https://a.example/old");
    if (waitMs > 0) await clock.advance(waitMs);
    const copy = response.clone();
    expect([copy.url, copy.redirected, copy.type]).toEqual(["https://a.example/new", true, "basic"]);
    expect(await Promise.all([copy.text(), response.text()])).toEqual(["hello", "hello"]);
    await clock.runToEnd();
    expect(polite.stats("a.example")).toMatchObject({ inFlight: 0 });
  });
});

describe("a response of a virtual site", () => {
  it("has nothing of its own that hides what a wrapper says", async () => {
    const response = await new VirtualOrigin({ clock: new VirtualClock() }).fetch("https://a.example/x");
    expect(Object.getOwnPropertyNames(response)).toEqual([]);
    expect(response).toBeInstanceOf(Response);
    expect(response.constructor).toBe(Response);
    expect(response.clone().clone().url).toBe("https://a.example/x");
  });
});
