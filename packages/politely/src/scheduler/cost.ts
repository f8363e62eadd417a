/** What one start costs at one key. */
export interface Cost {
  readonly rate: number;
  readonly window: number;
  readonly quota: number;
}

/** The cost of a request that says nothing about it. */
export const ONE: Cost = { rate: 1, window: 1, quota: 1 };

/** What is taken by none, or given back by none. */
export const NOTHING: Cost = { rate: 0, window: 0, quota: 0 };
