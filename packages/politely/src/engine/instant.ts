/** A clock reading as a whole number of microseconds. A hundredth of one absorbs the rounding of binary fractions of a millisecond. */
export function toUs(ms: number): number {
  return Math.floor(ms * 1000 + 0.01);
}

/** The first reading in milliseconds that `toUs` does not put before `us`. */
export function toMsAtOrAfter(us: number): number {
  const ms = us / 1000;
  return toUs(ms) >= us ? ms : (us + 1) / 1000;
}
