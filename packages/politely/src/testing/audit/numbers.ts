/** A list of numbers that grows, at 8 bytes each. */
export class Numbers {
  #values = new Float64Array(4);
  length = 0;

  push(value: number): void {
    if (this.length === this.#values.length) {
      const larger = new Float64Array(this.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.length] = value;
    this.length += 1;
  }

  at(index: number): number {
    return this.#values[index];
  }
}

/**
 * The numbers 0 to the count of `keys` - 1, by key; those of one key keep their order.
 *
 * Merges runs, from single ones on. Typed arrays sort slowly by a function, and by number only themselves.
 */
export function orderBy(keys: Float64Array): Uint32Array {
  const count = keys.length;
  let order = new Uint32Array(count);
  for (let index = 0; index < count; index++) order[index] = index;
  if (isAscending(keys)) return order;
  let merged = new Uint32Array(count);
  for (let size = 1; size < count; size *= 2) {
    for (let from = 0; from < count; from += 2 * size) {
      const middle = Math.min(from + size, count);
      const until = Math.min(from + 2 * size, count);
      let left = from;
      let right = middle;
      for (let to = from; to < until; to++) {
        const isLeft = left < middle && (right >= until || keys[order[left]] <= keys[order[right]]);
        merged[to] = isLeft ? order[left++] : order[right++];
      }
    }
    [order, merged] = [merged, order];
  }
  return order;
}

function isAscending(keys: Float64Array): boolean {
  for (let index = 1; index < keys.length; index++) if (keys[index - 1] > keys[index]) return false;
  return true;
}
