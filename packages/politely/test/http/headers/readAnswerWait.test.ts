import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readAnswer } from "../../../src/http/readAnswer.js";
import type { HeadersLike } from "../../../src/types.js";
import cases from "../../fixtures/retry-after.json" with { type: "json" };
import { seeded } from "../../laws/seeded.js";

const wallMs = Date.UTC(2026, 2, 1);
const wallSeconds = wallMs / 1_000;
const centuryUs = 36_525 * 86_400_000_000;

/** What odd callers pass in spite of the types. */
function odd(headers: unknown): HeadersLike {
  return headers as HeadersLike;
}

function readRetryAfterUs(headers: HeadersLike, nowMs: number): number {
  return readAnswer(headers, nowMs, 200).retryAfterUs;
}

describe("readAnswer, how long to wait", () => {
  it.each(cases)("reads Retry-After $header from headers of both kinds", ({ header, nowIso, expectMs }) => {
    const us = Math.min((expectMs ?? 0) * 1_000, centuryUs);
    expect(readRetryAfterUs({ "Retry-After": header }, Date.parse(nowIso))).toBe(us);
    expect(readRetryAfterUs(new Headers({ "Retry-After": header }), Date.parse(nowIso))).toBe(us);
  });

  it.each<[string, HeadersLike, number]>([
    ["a Headers object", new Headers({ "Retry-After": "2" }), 2_000_000],
    ["a name in lower case", { "retry-after": "2" }, 2_000_000],
    ["a name in upper case", { "RETRY-AFTER": "2" }, 2_000_000],
    ["a number", { "Retry-After": 0.5 }, 500_000],
    ["one line", { "Retry-After": ["2"] }, 2_000_000],
    ["several lines", { "Retry-After": ["2", "7", "3"] }, 7_000_000],
    ["one name in two spellings", { "Retry-After": "2", "retry-after": "7" }, 7_000_000],
    ["an object without prototype", Object.assign(Object.create(null), { "retry-after": "2" }), 2_000_000],
    ["a record whose field is called get", { get: "x", "retry-after": "2" }, 2_000_000],
    [
      "a getter that gives lines",
      odd({ get: (name: string) => (name === "retry-after" ? ["2", 3] : null) }),
      3_000_000,
    ],
    ["a map", odd(new Map([["retry-after", "2"]])), 2_000_000],
    ["pairs", odd([["Retry-After", "2"]]), 2_000_000],
    ["a raw list", odd(["Retry-After", "2", "date"]), 2_000_000],
    ["a raw list of bytes", odd([Buffer.from("Retry-After"), Buffer.from("2")]), 2_000_000],
    [
      "a raw list with several lines",
      odd([Buffer.from("retry-after"), [Buffer.from("2"), Buffer.from("5")]]),
      5_000_000,
    ],
  ])("reads %s", (_title, headers, us) => {
    expect(readRetryAfterUs(headers, wallMs)).toBe(us);
  });

  it.each<[string, unknown]>([
    ["no headers", {}],
    ["an empty Headers object", new Headers()],
    ["other headers", { "Content-Type": "text/html", Date: "Sun, 01 Mar 2026 00:00:00 GMT", "x-request-ids": "7" }],
    ["names of the same length", { "retry-aftex": "5", "content-length": "5", "x-retry-aftex": "5", data: "5" }],
    ["undefined", { "retry-after": undefined }],
    ["an empty list", { "retry-after": [] }],
    ["a list of something else", { "retry-after": [{}, "5"] }],
    ["more lines than make sense", { "retry-after": Array.from({ length: 65 }, () => "5") }],
    ["an object as value", { "retry-after": { toString: () => "5" } }],
    ["NaN", { "retry-after": Number.NaN }],
    ["a negative number", { "retry-after": -5 }],
    ["zero", { "retry-after": "0", "retry-after-ms": "0", "x-retry-after": 0 }],
    ["the past", { "retry-after": "Sat, 28 Feb 2026 00:00:00 GMT", "x-retry-after": String(wallSeconds - 1) }],
    ["null", null],
    ["nothing", undefined],
    ["text", "retry-after: 5"],
    ["a number", 5],
  ])("gives 0 for %s", (_title, headers) => {
    expect(readRetryAfterUs(odd(headers), wallMs)).toBe(0);
  });

  it("takes headers that throw for absent", () => {
    const fail = (): never => {
      throw new Error("no headers here");
    };
    expect(readRetryAfterUs({ get: fail }, wallMs)).toBe(0);
    expect(readRetryAfterUs(Object.defineProperty({}, "get", { get: fail }) as HeadersLike, wallMs)).toBe(0);
    const field = Object.defineProperty({}, "retry-after", { get: fail, enumerable: true });
    expect(readRetryAfterUs(field as HeadersLike, wallMs)).toBe(0);
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(readRetryAfterUs(proxy, wallMs)).toBe(0);
  });

  it("asks a getter with the getter as this", () => {
    const headers = {
      wait: "4",
      get(name: string): string | null {
        return name === "retry-after" ? this.wait : null;
      },
    };
    expect(readRetryAfterUs(headers, wallMs)).toBe(4_000_000);
  });

  it("does not ask for the Date when nothing else is there", () => {
    const asked: string[] = [];
    const get = (name: string): null => {
      asked.push(name);
      return null;
    };
    expect(readRetryAfterUs({ get }, wallMs)).toBe(0);
    expect(asked).toContain("retry-after");
    expect(asked).not.toContain("date");
    expect(new Set(asked).size).toBe(asked.length);
  });
});

describe("readAnswer, wait field by field", () => {
  it.each<[string, Readonly<Record<string, string | number | string[]>>, number]>([
    ["milliseconds", { "retry-after-ms": "1500" }, 1_500_000],
    ["parts of a millisecond, rounded up", { "Retry-After-Ms": "0.0001" }, 1_000],
    ["a decimal, rounded up", { "retry-after-ms": "2.3" }, 3_000],
    ["milliseconds as a number", { "retry-after-ms": 20 }, 20_000],
    ["milliseconds, never Unix time", { "retry-after-ms": "1000000000" }, 1_000_000_000_000],
    ["X-Retry-After", { "X-Retry-After": "3" }, 3_000_000],
    ["X-RateLimit-Retry-After", { "X-RateLimit-Retry-After": "2.5" }, 2_500_000],
    ["seconds just below Unix time", { "x-retry-after": "999999999" }, 999_999_999_000_000],
    ["Unix time", { "x-retry-after": String(wallSeconds + 9) }, 9_000_000],
    ["Unix time with decimals", { "x-retry-after": `${wallSeconds + 9}.25` }, 9_250_000],
    ["Unix time in milliseconds", { "x-ratelimit-retry-after": String(wallMs + 9_001) }, 9_001_000],
    ["Unix time on two lines", { "x-retry-after": [`${wallSeconds + 3}`, `${wallSeconds + 8}`] }, 8_000_000],
    ["a vendor's date", { "x-retry-after": "Sun, 01 Mar 2026 00:00:05 GMT" }, 5_000_000],
    ["Retry-After, never Unix time", { "retry-after": "1000000000" }, 1_000_000_000_000_000],
  ])("reads %s", (_title, headers, us) => {
    expect(readRetryAfterUs(headers, wallMs)).toBe(us);
    const lines = Object.entries(headers).map(([name, value]): [string, string] => [name, [value].flat().join(", ")]);
    expect(readRetryAfterUs(new Headers(lines), wallMs)).toBe(us);
  });

  it("lets the first field decide that asks for some time", () => {
    const all = { "x-ratelimit-retry-after": "4", "x-retry-after": "3", "retry-after": "2", "retry-after-ms": "1" };
    expect(readRetryAfterUs(all, wallMs)).toBe(1_000);
    expect(readRetryAfterUs({ ...all, "retry-after-ms": "soon" }, wallMs)).toBe(2_000_000);
    expect(readRetryAfterUs({ ...all, "retry-after-ms": "0" }, wallMs)).toBe(2_000_000);
    expect(readRetryAfterUs({ ...all, "retry-after-ms": "-1", "retry-after": "later" }, wallMs)).toBe(3_000_000);
    const last = { ...all, "retry-after-ms": "", "retry-after": "0", "x-retry-after": "1e3" };
    expect(readRetryAfterUs(last, wallMs)).toBe(4_000_000);
  });

  it("never asks for more than 100 years", () => {
    const endless = "9".repeat(40);
    for (const name of ["retry-after-ms", "retry-after", "x-retry-after", "x-ratelimit-retry-after"]) {
      expect(readRetryAfterUs({ [name]: endless }, wallMs)).toBe(centuryUs);
    }
  });
});

describe("readAnswer and the clock of the server", () => {
  // The server's clock is an hour ahead of ours.
  const date = "Sun, 01 Mar 2026 01:00:00 GMT";
  const retryAt = "Sun, 01 Mar 2026 01:00:30 GMT";

  it("measures instants from the Date of the answer", () => {
    expect(readRetryAfterUs({ Date: date, "Retry-After": retryAt }, wallMs)).toBe(30_000_000);
    expect(readRetryAfterUs(new Headers({ Date: date, "Retry-After": retryAt }), wallMs)).toBe(30_000_000);
    expect(readRetryAfterUs({ "Retry-After": retryAt, date }, wallMs)).toBe(30_000_000);
    expect(readRetryAfterUs({ date, "x-retry-after": wallSeconds + 3_607 }, wallMs)).toBe(7_000_000);
    expect(readRetryAfterUs({ date, "retry-after": retryAt }, Number.NaN)).toBe(30_000_000);
  });

  it("measures them from our own clock when the Date is absent or wrong", () => {
    for (const wrong of [undefined, "", "now", "5", "Sun, 31 Feb 2026 00:00:00 GMT", [date, date]]) {
      expect(readRetryAfterUs({ date: wrong, "retry-after": retryAt }, wallMs)).toBe(3_630_000_000);
    }
    expect(readRetryAfterUs({ "retry-after": retryAt }, Number.NaN)).toBe(0);
  });

  it("does not adjust delays", () => {
    expect(readRetryAfterUs({ date, "retry-after": "30" }, wallMs)).toBe(30_000_000);
    expect(readRetryAfterUs({ date, "x-retry-after": "30" }, wallMs)).toBe(30_000_000);
    expect(readRetryAfterUs({ date, "retry-after-ms": "30" }, wallMs)).toBe(30_000);
  });
});

describe("readAnswer, waits for any input", () => {
  const name = fc.constantFrom(
    "retry-after-ms",
    "Retry-After",
    "retry-after",
    "X-Retry-After",
    "X-RateLimit-Retry-After",
    "Date",
    "get",
  );
  const text = fc.oneof(
    fc.string(),
    fc.nat().map(String),
    fc.double({ min: 0, noNaN: true }).map(String),
    fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
  );
  const value = fc.oneof(text, fc.array(text), fc.double(), fc.anything());
  const wall = fc.oneof(fc.integer({ min: 0, max: 4e12 }), fc.double());

  it("never throws and gives whole microseconds from 0 to 100 years", () => {
    const record = fc.dictionary(name, value);
    const getter = record.map((fields) => ({ get: (key: string): unknown => fields[key] }));
    fc.assert(
      fc.property(fc.oneof(record, getter, fc.anything({ withNullPrototype: true })), wall, (headers, nowMs) => {
        const us = readRetryAfterUs(odd(headers), nowMs);
        expect(Number.isSafeInteger(us) && us >= 0 && us <= centuryUs).toBe(true);
      }),
      seeded(5_000),
    );
  });

  it("reads the same from a record and from a Headers object", () => {
    const visible = fc.oneof(fc.nat().map(String), fc.stringMatching(/^[ -~]{0,12}$/), fc.constantFrom("5", "0.25"));
    const fields = fc.uniqueArray(fc.tuple(name, visible), { selector: ([each]) => each.toLowerCase() });
    fc.assert(
      fc.property(fields, (pairs) => {
        const record = Object.fromEntries(pairs);
        expect(readRetryAfterUs(record, wallMs)).toBe(readRetryAfterUs(new Headers(record), wallMs));
      }),
      seeded(2_000),
    );
  });
});
