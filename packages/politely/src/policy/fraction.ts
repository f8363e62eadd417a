/** A number that is not negative, exact, in lowest terms: `top / bottom`. */
export interface Fraction {
  readonly top: bigint;
  readonly bottom: bigint;
}

/** How a decimal number is written, as the source of a regular expression: `5`, `0.5`, `.5`, `2e3`. No sign. */
export const decimalPattern = "(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:e[+-]?\\d{1,3})?";

const wholeDecimal = new RegExp(`^${decimalPattern}$`);

/**
 * Reads a decimal number without rounding; undefined when it is not one.
 *
 * A JavaScript number goes through the text it prints as: 0.1 is one tenth here, not the binary number next to it.
 */
export function readFraction(value: string | number): Fraction | undefined {
  const text = String(value);
  if (text.length > 64 || !wholeDecimal.test(text)) return undefined;
  const [mantissa, exponent = "0"] = text.split("e");
  const [whole, decimals = ""] = mantissa.split(".");
  const shift = Number(exponent) - decimals.length;
  const digits = BigInt(whole + decimals);
  return shift >= 0 ? { top: digits * power(shift), bottom: 1n } : reduce(digits, power(-shift));
}

/** Makes `top / bottom` a fraction in lowest terms. `bottom` must be above 0. */
export function reduce(top: bigint, bottom: bigint): Fraction {
  let divisor = bottom;
  for (let rest = top; rest > 0n; ) {
    [divisor, rest] = [rest, divisor % rest];
  }
  return { top: top / divisor, bottom: bottom / divisor };
}

/** The smallest whole number that is not below the fraction times `factor`. */
export function ceilTimes(fraction: Fraction, factor: bigint): bigint {
  return (fraction.top * factor + fraction.bottom - 1n) / fraction.bottom;
}

function power(exponent: number): bigint {
  return 10n ** BigInt(exponent);
}
