import { UsageError } from "../errors.js";

const UNITS: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};
const LARGEST = 2 ** 50;

/**
 * Reads the size that the option `name` was given, in bytes: `500kB`, `20MB`, `1.5GiB`, or a number of bytes. Capitals do not count.
 *
 * Throws `UsageError` for anything else, for less than a byte and for more than 1,024 TiB.
 */
export function sizeOption(name: string, text: string): number {
  const [, number, unit = "b"] = /^(\d{1,15}(?:\.\d{1,6})?) ?([kmgt]?i?b)?$/i.exec(text.trim()) ?? [];
  const bytes = Math.round(Number(number) * (UNITS[unit.toLowerCase()] ?? Number.NaN));
  if (bytes >= 1 && bytes <= LARGEST) return bytes;
  throw new UsageError(`${name} takes a size, such as 500kB, 20MB or 1GiB; got ${JSON.stringify(text)}`);
}
