import type { SharedLimiter } from "politely";
import { API_HOST } from "./settings.js";

/** What is read of an observation. */
export interface Observation {
  readonly id: number;
  readonly species_guess: string | null;
}

/** How full the window is, of all threads together. */
export interface CallStats {
  readonly callsInPeriod: number;
  readonly callsRemaining: number;
  readonly periodSec: number;
  /** Until a call may start again; 0 while some remain. */
  readonly nextResetSec: number;
}

/** Calls the API of iNaturalist. Every call waits its turn, and one that is refused is sent again as the policy says. */
export class INaturalistClient {
  constructor(
    readonly polite: SharedLimiter,
    /** A token of a user of the site. Default: anonymous. */
    readonly token?: string,
  ) {}

  /** Reads one observation. Rejects when the site answers with an error to the last attempt, or when `signal` is aborted. */
  async getObservation(id: number, signal: AbortSignal): Promise<Observation> {
    const response = await this.polite.fetch(`https://${API_HOST}/v1/observations/${id}`, {
      signal,
      headers: this.token === undefined ? {} : { authorization: this.token },
      politely: { timeout: "30s" },
    });
    if (!response.ok) throw new Error(`the API answered ${response.status}`);
    const { results } = (await response.json()) as { readonly results: readonly Observation[] };
    const [observation] = results;
    if (observation === undefined) throw new Error("the API knows no such observation");
    return observation;
  }

  /** Tells how many calls the window has, and how many it has room for. */
  async getStats(): Promise<CallStats | undefined> {
    const window = (await this.polite.stats(API_HOST, { fleet: true }))?.window;
    if (window === undefined) return undefined;
    return {
      callsInPeriod: window.calls,
      callsRemaining: window.remaining,
      periodSec: window.periodMs / 1_000,
      nextResetSec: window.nextFreeMs / 1_000,
    };
  }
}
