/** Somebody who knows the place in a crowd; -1 outside. */
export interface InCrowd {
  place: number;
}

/**
 * Those who are here now, in no order; coming and leaving costs the same however many there are.
 *
 * For members that come and go all the time: a `Set` makes itself a new table every few members, and each table that was left keeps the next one and all who were
 * in it from being collected young. Members that lead to a whole request then fill the old generation.
 */
export class Crowd<Member extends InCrowd> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  /** One of them. */
  get any(): Member | undefined {
    return this.#members.at(-1);
  }

  add(member: Member): void {
    member.place = this.#members.length;
    this.#members.push(member);
  }

  /** Does nothing when the member is not here. */
  remove(member: Member): void {
    const { place } = member;
    const last = this.#members.at(-1);
    if (place < 0 || last === undefined) return;
    this.#members[place] = last;
    last.place = place;
    this.#members.pop();
    member.place = -1;
  }

  /** All of them, as a list that stays the same when they leave. */
  toArray(): Member[] {
    return [...this.#members];
  }
}
