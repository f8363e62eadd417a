import { durationText } from "../../../src/words.js";
import { useTicks } from "../state/hooks.js";
import type { Host } from "../state/host.js";

/** Shorter waits than this are not counted down: nobody could read them. */
const SOON_MS = 1_000;

/** When the next start of a host is, counting down; a dash where nobody waits. */
export function NextStart({ host }: { readonly host: Host }) {
  useTicks(250, host.nextAtMs !== null || host.until !== null);
  return <>{nextStartText(host)}</>;
}

/** The same as a text of this moment. */
export function nextStartText({ nextAtMs, state, until, waiting }: Host): string {
  if (state === "cooling" || (state === "paused" && until !== null)) {
    const leftMs = (until ?? 0) - Date.now();
    return leftMs < SOON_MS ? "< 1 s" : `in ${secondsText(leftMs)}`;
  }
  if (state === "paused") return "when resumed";
  if (nextAtMs === null) return waiting > 0 ? "soon" : "–";
  const leftMs = nextAtMs - performance.now();
  return leftMs < SOON_MS ? "< 1 s" : `in ${secondsText(leftMs)}`;
}

/** Whole seconds, rounded up, so that the text changes once a second and ends with 1 s. */
export function secondsText(ms: number): string {
  return durationText(Math.ceil(ms / 1_000) * 1_000);
}
