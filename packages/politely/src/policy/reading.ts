/**
 * What reading a value gave: what it means, or the rule it breaks.
 *
 * A problem is the end of a sentence whose beginning is the name of the field: `must be …; got …`.
 */
export type Reading<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: string; readonly isWrongType: boolean };

/** A reading that succeeded. */
export function good<Value>(value: Value): Reading<Value> {
  return { ok: true, value };
}

/** A reading of a value that breaks a rule, or has the wrong type. */
export function bad(problem: string, isWrongType = false): Reading<never> {
  return { ok: false, problem, isWrongType };
}

/** Takes the value out of a reading, or throws `TypeError` (wrong type) or `RangeError` (wrong value) with `name` in front. */
export function unwrap<Value>(reading: Reading<Value>, name: string): Value {
  if (reading.ok) return reading.value;
  const message = `${name} ${reading.problem}`;
  throw reading.isWrongType ? new TypeError(message) : new RangeError(message);
}
