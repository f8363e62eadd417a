import { describe, expect, it } from "vitest";
import { type LimiterOptions, limit, politely } from "../../src/index.js";
import { failure, rig } from "../verbs/support.js";

describe("null where an option is meant", () => {
  it("is no signal, and the error says what is", async () => {
    const { limiter } = rig();
    const options = { signal: null as unknown as AbortSignal };
    const error = await failure(limiter.acquire("x.example", options));
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toContain("signal must be an AbortSignal, or left out; got null");
  });

  it.each([
    ["null", null],
    ["a text", "fast"],
    ["a number", 5],
  ])("are no options, and the error says what are: %s", (_title, value) => {
    const options = value as unknown as LimiterOptions;
    const make = [() => politely({}, options), () => limit({ rate: "1/s" }, options)];
    for (const each of make) {
      expect(each).toThrow(TypeError);
      expect(each).toThrow(`options must be an object, as in { maxKeys: 1000 }, or left out; got ${String(value)}`);
    }
  });
});
