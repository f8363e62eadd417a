import { Heap, type Positioned } from "../engine/heap.js";
import type { LimitKind } from "../observe/types.js";
import type { Gate } from "./gate.js";
import { costAt, isLaneBefore, type Lane } from "./lane.js";
import type { Ledger } from "./ledger.js";
import { HAS_COOLDOWN, HAS_PAUSE, HAS_SLOWDOWN, IS_RESERVED } from "./slab.js";

/** What can end without an event is looked at again after this long at the latest: a wall clock jumps, a hold ends early. */
export const LOOK_AGAIN_US = 60_000_000;

/** What holds a key that is nobody's turn to end. */
const HELD_BY: ReadonlySet<LimitKind | undefined> = new Set([
  "cooldown",
  "probe",
  "pause",
  "quota",
  "headers",
  "robots",
  "adaptive",
]);

/** One key that is kept for one lane. */
export class Reservation implements Positioned {
  /** Among the reservations of its key. */
  position = -1;

  constructor(
    readonly lane: Lane,
    readonly gate: Gate,
  ) {}
}

/** What a lane that shares several keys with others may have: reservations, from when it is older than `ageing`. */
export class Claim implements Positioned {
  /** Among the claims to be judged. */
  position = -1;
  /** When it is to be judged again; Infinity: only when something happens. */
  dueUs = Number.POSITIVE_INFINITY;
  /** It was older than `ageing` when it was judged. */
  isAged = false;
  /** Empty while it is too young, or held up by what it does not share. */
  places: Reservation[] = [];
  /** The key that holds it up; undefined while none does. */
  heldAt: Gate | undefined = undefined;

  constructor(readonly lane: Lane) {}
}

/**
 * Keeps keys for lanes that need several of them and have waited for longer than `ageing`: nobody of lower order takes from those.
 *
 * A lane that is stopped by a key of its own, or by a site's word, keeps nobody waiting meanwhile. Claims are judged at instants that
 * follow from the lane itself, and when something happens at its keys: never because somebody else came, looked and gave up.
 * Only lanes that share two keys or more have a claim; at a single shared key its queue is all that is needed.
 */
export class Reservations {
  /** When the next claim is to be judged; Infinity for never. */
  nextUs = Number.POSITIVE_INFINITY;
  readonly #claims = new Heap<Claim>((a, b) => a.dueUs < b.dueUs);

  constructor(
    readonly ledger: Ledger,
    readonly ageingUs: number,
    /** Looks again at those stopped at a key. */
    readonly wake: (gate: Gate) => void,
  ) {}

  /** A lane has come to its gates, with somebody in it. */
  joined(lane: Lane): void {
    for (const gate of lane.gates) {
      // With two it is no longer the key of the first alone.
      if (gate.lanes.size === 2) for (const each of gate.lanes) if (each !== lane) this.#count(each);
    }
    this.#count(lane);
  }

  /** A lane is gone from its gates. */
  left(lane: Lane): void {
    if (lane.claim !== undefined) this.#end(lane.claim);
    for (const { lanes } of lane.gates) {
      if (lanes.size === 1) for (const last of lanes) if (last.claim !== undefined) this.#count(last);
    }
  }

  /** The head of a lane starts: its next turn is a new one. */
  started(lane: Lane, nowUs: number): void {
    const { claim } = lane;
    if (claim === undefined || !claim.isAged) return;
    this.#drop(claim);
    claim.isAged = false;
    this.#schedule(claim, nowUs + this.ageingUs + 1);
  }

  /** The head of a lane, or its claim to a turn, has changed. */
  changed(lane: Lane): void {
    const { claim } = lane;
    if (claim === undefined || !claim.isAged) return;
    for (const place of claim.places) {
      const { gate } = place;
      gate.reservations?.update(place);
      this.#refresh(gate);
      if (gate.reservedFor === lane) this.wake(gate);
    }
    this.#schedule(claim, Number.NEGATIVE_INFINITY);
  }

  /** Something has happened at a key: an answer, a pause, a reset. */
  touched(gate: Gate): void {
    if (this.#claims.size === 0) return;
    // Those who have reservations lose them by a hold only; those whom this key holds up may get them.
    if (this.#canBeHeld(gate.slot)) this.#again(gate.reservedFor);
    for (const { lane } of gate.held ?? []) this.#again(lane);
    if (gate.lanes.size === 1) for (const lane of gate.lanes) this.#again(lane);
  }

  /** Judges the first of the claims; call it while `nextUs` has come. */
  judge(nowUs: number): void {
    const claim = this.#claims.peek();
    if (claim === undefined) return;
    const agedUs = claim.lane.turnUs + this.ageingUs;
    claim.isAged = nowUs > agedUs;
    const freeUs = claim.isAged ? this.#freeAt(claim, nowUs) : agedUs + 1;
    if (freeUs > nowUs) this.#drop(claim);
    else this.#reserve(claim);
    this.#schedule(claim, freeUs > nowUs ? freeUs : Number.POSITIVE_INFINITY);
  }

  /** When nothing holds the lane up but those it shares keys with, or when to ask again; at or before `nowUs` means now. */
  #freeAt(claim: Claim, nowUs: number): number {
    const { head, gates } = claim.lane;
    let freeUs = nowUs;
    let heldAt: Gate | undefined;
    for (let index = 0; head !== undefined && index < gates.length; index++) {
      const gate = gates[index];
      const readyUs = this.ledger.readyAt(gate.slot, costAt(head.cost, index), nowUs);
      const isShared = gate.lanes.size > 1;
      if (readyUs <= nowUs || (isShared && !HELD_BY.has(this.ledger.binding))) continue;
      if (readyUs > freeUs) heldAt = gate;
      freeUs = Math.max(freeUs, readyUs);
      // It holds up all the others as well.
      if (isShared) for (const place of gate.reservations?.items ?? []) this.#again(place.lane);
    }
    this.#holdAt(claim, heldAt);
    return Math.min(freeUs, nowUs + LOOK_AGAIN_US);
  }

  #holdAt(claim: Claim, gate: Gate | undefined): void {
    claim.heldAt?.held?.delete(claim);
    claim.heldAt = gate;
    if (gate === undefined) return;
    gate.held ??= new Set();
    gate.held.add(claim);
  }

  #canBeHeld(slot: number): boolean {
    const { slab } = this.ledger;
    if (slab.hasFlag(slot, HAS_COOLDOWN | HAS_PAUSE | HAS_SLOWDOWN)) return true;
    return this.ledger.profileOf(slot).rule.quota !== undefined;
  }

  #again(lane: Lane | undefined): void {
    if (lane?.claim?.isAged === true) this.#schedule(lane.claim, Number.NEGATIVE_INFINITY);
  }

  /** Gives a lane a claim, or takes it away, after others came to its keys or left them. */
  #count(lane: Lane): void {
    if (lane.gates.length < 2) return;
    let shared = 0;
    for (const { lanes } of lane.gates) if (lanes.size > 1) shared += 1;
    if (shared < 2) {
      if (lane.claim !== undefined) this.#end(lane.claim);
    } else if (lane.claim === undefined) {
      lane.claim = new Claim(lane);
      this.#schedule(lane.claim, lane.turnUs + this.ageingUs + 1);
    } else if (lane.claim.isAged) {
      this.#drop(lane.claim);
      this.#schedule(lane.claim, Number.NEGATIVE_INFINITY);
    }
  }

  #reserve(claim: Claim): void {
    if (claim.places.length > 0) return;
    for (const gate of claim.lane.gates) {
      if (gate.lanes.size === 1) continue;
      const place = new Reservation(claim.lane, gate);
      gate.reservations ??= new Heap(isReservationBefore);
      gate.reservations.push(place);
      claim.places.push(place);
      this.#refresh(gate);
    }
  }

  #drop(claim: Claim): void {
    if (claim.places.length === 0) return;
    for (const place of claim.places) {
      place.gate.reservations?.remove(place);
      this.#refresh(place.gate);
    }
    claim.places = [];
  }

  #end(claim: Claim): void {
    this.#drop(claim);
    this.#holdAt(claim, undefined);
    claim.lane.claim = undefined;
    this.#claims.remove(claim);
    this.nextUs = this.#claims.peek()?.dueUs ?? Number.POSITIVE_INFINITY;
  }

  /** Notes who is the first that a key is kept for. When that is another one than before, those it stopped are looked at. */
  #refresh(gate: Gate): void {
    const { reservedFor } = gate;
    const first = gate.reservations?.peek()?.lane;
    if (first === reservedFor) return;
    gate.reservedFor = first;
    this.ledger.slab.setFlag(gate.slot, IS_RESERVED, first !== undefined);
    if (reservedFor !== undefined) this.wake(gate);
  }

  #schedule(claim: Claim, dueUs: number): void {
    claim.dueUs = dueUs;
    this.#claims.update(claim);
    this.nextUs = this.#claims.peek()?.dueUs ?? Number.POSITIVE_INFINITY;
  }
}

function isReservationBefore(a: Reservation, b: Reservation): boolean {
  return isLaneBefore(a.lane, b.lane);
}
