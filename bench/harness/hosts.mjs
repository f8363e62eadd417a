// @ts-check

/**
 * Host names `h0.example.com` …, each one flat string: joined strings would be flattened by the first
 * map that takes them, and the map would be charged for it.
 *
 * @param {number} count
 */
export function hostNames(count) {
  return Array.from({ length: count }, (_, i) => Buffer.from(`h${i}.example.com`, "latin1").toString("latin1"));
}

/**
 * The numbers below `count` in an order that looks random and is the same in every run and in Go.
 *
 * @param {number} count
 */
export function shuffled(count) {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  let state = 2463534242;
  for (let i = count - 1; i > 0; i--) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    const j = (state >>> 0) % (i + 1);
    const kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  return order;
}
