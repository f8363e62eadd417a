/**
 * What one field of a bucket says.
 *
 * The first six say one thing each. `usedOfLimit` is `32/40`, also named and several (`api-usage=18/5000`); `namedRemaining`
 * is what remains in several named buckets (`PutVM3Min;239`); `totals` is `total=100; remaining=99; resets=45`; `perSecond` is
 * a rate, which may be below one.
 */
export type FieldRole =
  | "limit"
  | "remaining"
  | "used"
  | "reset"
  | "resetAfter"
  | "window"
  | "usedOfLimit"
  | "namedRemaining"
  | "totals"
  | "perSecond";

/** Which families come first: those of the drafts, those of vendors, then the common `X-RateLimit-*`. */
export type FamilyRank = "triple" | "vendor" | "common";
