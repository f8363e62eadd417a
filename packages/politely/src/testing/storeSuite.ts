import { FLEET_CASES, LEASE_CASES } from "./store/fleetCases.js";
import { LIMIT_CASES } from "./store/limitCases.js";
import { inStoreWorld, type OpenStore } from "./store/world.js";

/** One thing that every store does. `run` rejects with what differs. */
export interface StoreCase {
  readonly title: string;
  readonly run: () => Promise<void>;
}

/**
 * What every store does, as a list of cases for any test runner:
 * `for (const { title, run } of storeSuite("mine", open)) it(title, run);`
 *
 * `open` is called for each case and must find the place ready: server started, tables created. All is asked through `transact`, in
 * real time, and takes less than 10 s in all. Names are new in every case and every run, so the place may be in use already;
 * what the cases leave behind expires by itself.
 */
export function storeSuite(name: string, open: () => Promise<OpenStore>): StoreCase[] {
  const cases = Object.entries({ ...LIMIT_CASES, ...FLEET_CASES, ...LEASE_CASES });
  return cases.map(([title, play]) => ({ title: `${name} ${title}`, run: () => inStoreWorld(open, play) }));
}
