/** Units of a calendar budget spent in period `nowIndex`, when `used` were spent in period `index`. The index only grows: an older `nowIndex` is still period `index`. */
export function quotaUsed(index: number, used: number, nowIndex: number): number {
  return nowIndex > index ? 0 : used;
}
