import { expect, it } from "vitest";
import { UsageError } from "../../src/errors.js";
import { sizeOption } from "../../src/get/sizeOption.js";

it("reads sizes in bytes, in thousands and in powers of two", () => {
  const cases = { "200": 200, "1b": 1, "500kB": 500_000, "1.5 MB": 1_500_000, "1GiB": 1_073_741_824, "2tib": 2 ** 41 };
  for (const [text, bytes] of Object.entries(cases)) expect(sizeOption("--max-size", text)).toBe(bytes);
});

it("refuses what is no size, naming the option", () => {
  for (const text of ["", "0", "-1", "1 hour", "1ib", "9999999TB", "1e9", "NaN"]) {
    expect(() => sizeOption("--max-size", text)).toThrow(UsageError);
  }
  expect(() => sizeOption("--max-size", "big")).toThrow(
    '--max-size takes a size, such as 500kB, 20MB or 1GiB; got "big"',
  );
});
