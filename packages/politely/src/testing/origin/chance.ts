import type { Time } from "./options.js";

/**
 * Makes numbers from 0 up to but not including 1 that are the same for the same seed and stream.
 *
 * Streams of one seed are independent of each other, so that drawing more from one does not change another.
 */
export function createRandom(seed: number, stream: string): () => number {
  let state = scramble(seed ^ scramble(Math.floor(seed / 2 ** 32)));
  for (let index = 0; index < stream.length; index += 1) state = scramble(state ^ stream.charCodeAt(index));
  const next = (): number => {
    state = (state + 0x9e3779b9) | 0;
    return scramble(state) >>> 0;
  };
  // Two draws make the 53 bits of a double.
  return () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53;
}

/** Spreads each bit of a 32-bit number over all of them. */
function scramble(number: number): number {
  let bits = (number ^ 0x9e3779b9) | 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x45d9f3b5);
  bits = Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d);
  return bits ^ (bits >>> 16);
}

/** Says how long one request after another takes that is begun at an instant: milliseconds, in whole microseconds. */
export type TimeModel = (atMs: number) => number;

/** Makes a model that draws from `random`. The numbers drawn depend on the order of the calls only. */
export function timeModel(time: Time, random: () => number): TimeModel {
  if (typeof time === "number") return () => time;
  switch (time.kind) {
    case "uniform":
      return () => wholeUs(time.minMs + random() * (time.maxMs - time.minMs));
    case "log-normal": {
      const { medianMs, sigma, maxMs = Math.max(medianMs, 60_000) } = time;
      return () => wholeUs(Math.min(maxMs, medianMs * Math.exp(sigma * normal(random))));
    }
    case "queue": {
      const service = timeModel(time.service, random);
      const freeAtMs = Array.from({ length: time.workers }, () => Number.NEGATIVE_INFINITY);
      return (atMs) => {
        const first = freeAtMs.indexOf(Math.min(...freeAtMs));
        freeAtMs[first] = Math.max(atMs, freeAtMs[first]) + service(atMs);
        return freeAtMs[first] - atMs;
      };
    }
  }
}

/** A number from the bell curve with mean 0 and deviation 1, of two draws. */
function normal(random: () => number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random()));
  return radius * Math.cos(2 * Math.PI * random());
}

function wholeUs(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
