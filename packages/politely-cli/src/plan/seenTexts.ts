/** Slots of a new table; a power of two. */
const FIRST_SLOTS = 1 << 12;

/**
 * Remembers texts by 64 bits of hash: 8 to 32 bytes each, however long they are.
 *
 * Among a million different texts, two are taken for one with a chance of one in thirty million.
 */
export class SeenTexts {
  #slots = FIRST_SLOTS;
  #high = new Uint32Array(FIRST_SLOTS);
  #low = new Uint32Array(FIRST_SLOTS);
  #size = 0;

  /** `most`: beyond so many nothing more is remembered. */
  constructor(readonly most: number) {}

  /** Whether the text is new. It is remembered from now on, while there is room. */
  add(text: string): boolean {
    let high = 0x811c9dc5;
    let low = 0x2545f491;
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      high = Math.imul(high ^ code, 0x01000193);
      low = Math.imul(low ^ code, 0x5bd1e995);
      low ^= low >>> 15;
    }
    // 0 in both stands for an empty slot.
    const one = mixed(high) || 1;
    const other = mixed(low ^ text.length);
    const place = this.#find(one, other);
    if (this.#high[place] !== 0) return false;
    if (this.#size >= this.most) return true;
    this.#high[place] = one;
    this.#low[place] = other;
    this.#size += 1;
    if (2 * this.#size > this.#slots) this.#grow();
    return true;
  }

  /** The slot that holds these hashes, or the empty one where they belong. */
  #find(high: number, low: number): number {
    const mask = this.#slots - 1;
    let place = low & mask;
    while (this.#high[place] !== 0 && (this.#high[place] !== high || this.#low[place] !== low))
      place = (place + 1) & mask;
    return place;
  }

  #grow(): void {
    const highs = this.#high;
    const lows = this.#low;
    this.#slots *= 2;
    this.#high = new Uint32Array(this.#slots);
    this.#low = new Uint32Array(this.#slots);
    for (let from = 0; from < highs.length; from++) {
      if (highs[from] === 0) continue;
      const place = this.#find(highs[from], lows[from]);
      this.#high[place] = highs[from];
      this.#low[place] = lows[from];
    }
  }
}

/** Spreads what the last characters changed over all bits. */
function mixed(hash: number): number {
  let value = hash;
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
