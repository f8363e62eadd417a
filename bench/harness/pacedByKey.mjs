// @ts-check

/**
 * Paces numbered keys, each by itself: with one limiter, or with a limiter for each key where the rival knows no keys.
 *
 * @param {import("../measures/types.d.ts").Rival} rival
 * @param {{ keys: number; limit: import("../measures/types.d.ts").Limit; options: object }} setup
 * @param {(startedAtMs: number, key: number) => void} onStart
 * @returns {(key: number) => void}
 */
export function pacedByKey(rival, { keys, limit, options }, onStart) {
  if (rival.pacedKeys) return rival.pacedKeys(limit, onStart, options);
  const begins = Array.from({ length: keys }, (_, key) =>
    rival.paced(limit, (/** @type {number} */ atMs) => onStart(atMs, key), undefined, options),
  );
  return (key) => begins[key]();
}
