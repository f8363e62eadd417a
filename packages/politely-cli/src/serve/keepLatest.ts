/** Sets an entry of a map as its latest, and drops the oldest one beyond `most`. */
export function keepLatest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
