/** No piece of a normalised path has characters beyond ASCII. */
const alphabetSize = 128;

/**
 * Finds pieces of one text of ASCII characters, however many are asked for: a piece takes time in proportion to its own length, not to
 * that of the text.
 *
 * It is the suffix automaton of the text. A state stands for pieces that end at the same places; a link leads to the next shorter ones,
 * which end at more places. Making it takes time and memory in proportion to the text.
 */
export class Substrings {
  /** States of the automaton; 0 is the empty piece. */
  #size = 1;
  #edges = 0;
  readonly #lengths: Int32Array;
  readonly #links: Int32Array;
  /** Where the first place ends. */
  readonly #ends: Int32Array;
  /** 1 for the state that a character of the text has made, 0 for one that was split off another. */
  readonly #isOwn: Uint8Array;
  /** By character, where the empty piece leads to. */
  readonly #rootEdges = new Int32Array(alphabetSize).fill(-1);
  /** The edges of the other states are lists, each from its state's last one on. */
  readonly #heads: Int32Array;
  readonly #nextEdges: Int32Array;
  readonly #codes: Uint8Array;
  readonly #targets: Int32Array;
  #places: Places | undefined = undefined;

  constructor(readonly text: string) {
    const states = 2 * text.length + 1;
    const edges = 3 * text.length + 1;
    this.#lengths = new Int32Array(states);
    this.#links = new Int32Array(states);
    this.#ends = new Int32Array(states);
    this.#isOwn = new Uint8Array(states);
    this.#heads = new Int32Array(states).fill(-1);
    this.#nextEdges = new Int32Array(edges);
    this.#codes = new Uint8Array(edges);
    this.#targets = new Int32Array(edges);
    this.#links[0] = -1;
    let last = 0;
    for (let end = 0; end < text.length; end++) last = this.#extend(last, text.charCodeAt(end), end);
  }

  /** The first place from `from` on where the piece begins; -1 when there is none. */
  find(piece: string, from: number): number {
    let state = 0;
    for (let index = 0; index < piece.length; index++) {
      state = this.#follow(state, piece.charCodeAt(index));
      if (state === -1) return -1;
    }
    const beforeEnd = piece.length - 1;
    const firstEnd = this.#ends[state];
    if (firstEnd - beforeEnd >= from) return firstEnd - beforeEnd;
    this.#places ??= this.#sortPlaces();
    const end = this.#places.firstFrom(state, from + beforeEnd);
    return end === -1 ? -1 : end - beforeEnd;
  }

  /** Adds a character to the text; `last` is the state of the text before it. */
  #extend(last: number, code: number, end: number): number {
    const lengths = this.#lengths;
    const links = this.#links;
    const made = this.#newState(lengths[last] + 1, end);
    this.#isOwn[made] = 1;
    let state = last;
    while (state !== -1 && this.#follow(state, code) === -1) {
      this.#addEdge(state, code, made);
      state = links[state];
    }
    if (state === -1) return made;
    const target = this.#follow(state, code);
    links[made] = lengths[state] + 1 === lengths[target] ? target : this.#split(state, code, target);
    return made;
  }

  /** Parts the shorter pieces of a state from the longer ones, as they now end at one more place. */
  #split(from: number, code: number, target: number): number {
    const part = this.#newState(this.#lengths[from] + 1, this.#ends[target]);
    for (let edge = this.#heads[target]; edge !== -1; edge = this.#nextEdges[edge]) {
      this.#addEdge(part, this.#codes[edge], this.#targets[edge]);
    }
    this.#links[part] = this.#links[target];
    this.#links[target] = part;
    for (let state = from; state !== -1 && this.#follow(state, code) === target; state = this.#links[state]) {
      if (state === 0) this.#rootEdges[code] = part;
      else this.#targets[this.#edgeOf(state, code)] = part;
    }
    return part;
  }

  #newState(length: number, end: number): number {
    const state = this.#size++;
    this.#lengths[state] = length;
    this.#ends[state] = end;
    return state;
  }

  #follow(state: number, code: number): number {
    if (state === 0) return code < alphabetSize ? this.#rootEdges[code] : -1;
    const edge = this.#edgeOf(state, code);
    return edge === -1 ? -1 : this.#targets[edge];
  }

  #edgeOf(state: number, code: number): number {
    let edge = this.#heads[state];
    while (edge !== -1 && this.#codes[edge] !== code) edge = this.#nextEdges[edge];
    return edge;
  }

  #addEdge(state: number, code: number, target: number): void {
    if (state === 0) {
      this.#rootEdges[code] = target;
      return;
    }
    const edge = this.#edges++;
    this.#codes[edge] = code;
    this.#targets[edge] = target;
    this.#nextEdges[edge] = this.#heads[state];
    this.#heads[state] = edge;
  }

  /** Sorts the ends so that those of each state are next to each other. */
  #sortPlaces(): Places {
    const byLength = sortByLength(this.#lengths.subarray(0, this.#size), this.text.length);
    const counts = Int32Array.from(this.#isOwn);
    for (let at = byLength.length - 1; at > 0; at--) counts[this.#links[byLength[at]]] += counts[byLength[at]];
    const starts = new Int32Array(this.#size);
    const free = new Int32Array(this.#size);
    const order = new Int32Array(this.text.length);
    for (const state of byLength) {
      if (state !== 0) {
        const outer = this.#links[state];
        starts[state] = free[outer];
        free[outer] += counts[state];
      }
      free[state] = starts[state] + this.#isOwn[state];
      if (this.#isOwn[state] === 1) order[starts[state]] = this.#ends[state];
    }
    return new Places(order, starts, counts);
  }
}

/** Where the pieces of each state end. */
class Places {
  /** In the one with number k each run of 2^k ends is sorted by itself. */
  readonly #levels: Int32Array[];

  constructor(
    order: Int32Array,
    readonly starts: Int32Array,
    readonly counts: Int32Array,
  ) {
    this.#levels = [order];
    for (let run = 1; 2 * run <= order.length; run *= 2)
      this.#levels.push(merged(this.#levels[this.#levels.length - 1], run));
  }

  /** The first end of a state that is not before `from`; -1 when there is none. Takes the square of the logarithm of their number. */
  firstFrom(state: number, from: number): number {
    let best = Number.POSITIVE_INFINITY;
    let at = this.starts[state];
    const end = at + this.counts[state];
    while (at < end) {
      // The longest run that begins here and does not reach beyond the end.
      const aligned = at === 0 ? 31 : 31 - Math.clz32(at & -at);
      const level = Math.min(aligned, 31 - Math.clz32(end - at), this.#levels.length - 1);
      const found = lowerBound(this.#levels[level], at, at + 2 ** level, from);
      if (found < at + 2 ** level) best = Math.min(best, this.#levels[level][found]);
      at += 2 ** level;
    }
    return best === Number.POSITIVE_INFINITY ? -1 : best;
  }
}

/** Merges each two sorted runs of a length into one. What is left over at the end stays as it is. */
function merged(runs: Int32Array, length: number): Int32Array {
  const result = runs.slice();
  for (let start = 0; start + 2 * length <= runs.length; start += 2 * length) {
    let left = start;
    let right = start + length;
    for (let at = start; at < start + 2 * length; at++) {
      const isLeft = right === start + 2 * length || (left < start + length && runs[left] <= runs[right]);
      result[at] = isLeft ? runs[left++] : runs[right++];
    }
  }
  return result;
}

/** The first place of a sorted part whose value is not below `least`; `end` when there is none. */
function lowerBound(values: Int32Array, start: number, end: number, least: number): number {
  let low = start;
  let high = end;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The numbers of states, the shortest first. */
function sortByLength(lengths: Int32Array, longest: number): Int32Array {
  const slots = new Int32Array(longest + 2);
  for (const length of lengths) slots[length + 1] += 1;
  for (let length = 1; length < slots.length; length++) slots[length] += slots[length - 1];
  const sorted = new Int32Array(lengths.length);
  lengths.forEach((length, state) => {
    sorted[slots[length]++] = state;
  });
  return sorted;
}
