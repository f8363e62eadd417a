/** Numbers from 0 up to 1, the same ones for the same seed. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    // The low bits of such a generator are poor, so they are mixed with the high ones.
    const mixed = Math.imul(state ^ (state >>> 16), 0x45d9f3b) >>> 0;
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** A latency that varies as those of real sites do: `medianMs` times a log-normal number. */
export function variedMs(medianMs: number, sigma: number, random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return medianMs * Math.exp(sigma * normal);
}
