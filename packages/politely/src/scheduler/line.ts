/** Something that knows its place in a line; -1 outside. */
export interface InLine {
  place: number;
}

/** So many places at least are worth tidying up, and so many for each who stands there: everybody has to be told the new place. */
const TIDY_FROM = 64;
const PLACES_EACH = 4;

/**
 * A queue that anybody may leave from the middle at no cost to the others.
 *
 * Those who leave make a gap; gaps are skipped when they come to the front, and
 * closed when they are three times as many as those who stand.
 */
export class Line<Item extends InLine> {
  #items: (Item | undefined)[] = [];
  /** How many are gone from the front. */
  #gone = 0;
  count = 0;

  get first(): Item | undefined {
    return this.#items[this.#gone];
  }

  push(item: Item): void {
    item.place = this.#items.length;
    // A list that grows from nothing makes room for many at once, and most lines have one.
    if (this.#items.length === 0) this.#items = [item];
    else this.#items.push(item);
    this.count += 1;
  }

  /** Takes an item out, which must be in this line. */
  remove(item: Item): void {
    this.#items[item.place] = undefined;
    item.place = -1;
    this.count -= 1;
    while (this.#gone < this.#items.length && this.#items[this.#gone] === undefined) this.#gone += 1;
    if (!isGappy(this.#items.length, this.count)) return;
    closeGaps(this.#items, setPlace);
    this.#gone = 0;
  }

  /** Everybody in order, as a list that stays the same when they leave. */
  toArray(): Item[] {
    return this.#items.filter((item) => item !== undefined);
  }
}

function setPlace(item: InLine, place: number): void {
  item.place = place;
}

/** Whether a list of so many places has more gaps than are worth keeping. */
export function isGappy(places: number, standing: number): boolean {
  return places >= TIDY_FROM && standing * PLACES_EACH < places;
}

/** Closes the gaps of a list and tells everybody the new place. In place: a list of thousands is expensive to copy. */
export function closeGaps<Item>(list: (Item | undefined)[], setPlace: (item: Item, place: number) => void): void {
  let count = 0;
  for (const item of list) {
    if (item === undefined) continue;
    list[count] = item;
    setPlace(item, count);
    count += 1;
  }
  list.length = count;
}
