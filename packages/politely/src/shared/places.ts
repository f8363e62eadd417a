import type { KeyState } from "./keyState.js";
import { logUnits } from "./tracks.js";

/** Frees the places of processes that gave no sign of life, and those held for too long, each at its instant. */
export function endLapsedPlaces(state: KeyState, nowUs: number): void {
  for (;;) {
    let first = -1;
    let firstUs = Number.POSITIVE_INFINITY;
    state.places.forEach(({ expiresUs, holdUntilUs }, index) => {
      const atUs = Math.min(expiresUs, holdUntilUs);
      if (atUs > nowUs || atUs >= firstUs) return;
      first = index;
      firstUs = atUs;
    });
    if (first < 0) return;
    endPlace(state, first, firstUs, state.places[first].units);
  }
}

/** Frees a place. Where gaps and windows run from the answer, they begin now, with `units`; undefined if it was never sent. */
export function endPlace(state: KeyState, index: number, atUs: number, units: number | undefined): void {
  state.places.splice(index, 1);
  if (units === undefined) return;
  const fromAnswer = state.tracks.filter(({ rule }) => rule.fromAnswer);
  for (const track of fromAnswer) logUnits(track, atUs, units);
  if (fromAnswer.length > 0) state.answeredUs = Math.max(state.answeredUs, atUs);
}
