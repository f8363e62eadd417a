/**
 * Makes numbers from 0 up to but not including 1 that are the same for the same seed and stream.
 *
 * Streams of one seed are independent of each other, so that drawing more from one does not change another.
 */
export function createRandom(seed: number, stream: string): () => number {
  let a = scramble(seed);
  let b = scramble(a ^ hashOf(stream));
  let c = scramble(b ^ Math.floor(seed / 2 ** 32));
  let d = scramble(c) | 1;

  // Marsaglia's xorshift with 128 bits of state; the last bit of d keeps the state from being all zero.
  const next = (): number => {
    const mixed = a ^ (a << 11);
    a = b;
    b = c;
    c = d;
    d = d ^ (d >>> 19) ^ mixed ^ (mixed >>> 8);
    return d >>> 0;
  };
  // Two draws make the 53 bits of a double.
  return () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53;
}

/** A number from the bell curve with mean 0 and deviation 1, of two draws. */
export function normal(random: () => number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random()));
  return radius * Math.cos(2 * Math.PI * random());
}

function hashOf(text: string): number {
  let hash = 7;
  for (let index = 0; index < text.length; index += 1) hash = scramble(hash ^ text.charCodeAt(index));
  return hash;
}

/** Spreads each bit of a 32-bit number over all of them. */
function scramble(number: number): number {
  let bits = (number ^ 0x9e3779b9) | 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x45d9f3b5);
  bits = Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d);
  return bits ^ (bits >>> 16);
}
