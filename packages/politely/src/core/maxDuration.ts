/** The longest time anywhere, in microseconds: 100 years. Added to any instant it is still exact. */
export const maxDurationUs = 36_525 * 86_400_000_000;
