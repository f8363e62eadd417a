/**
 * When the next start may follow one at `lastUs`: never less than `gapUs` later.
 *
 * `lastUs` is -Infinity before the first start, which then may go at once.
 */
export function gapReadyAt(lastUs: number, gapUs: number): number {
  return lastUs + gapUs;
}
