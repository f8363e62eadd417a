/** What a limit tells its clients about itself at one instant. Instants are in microseconds of the origin's clock. */
export interface Quota {
  /** The most requests that may come at once. */
  readonly count: number;
  /** How many more would be let in right now. */
  readonly remaining: number;
  /** With none remaining, when the next one is let in; otherwise when all of `count` may come again. */
  readonly resetAtUs: number;
  /** How long it takes from none remaining to all of them. */
  readonly windowUs: number;
}

/** One limit of a site for one client. Time is whole microseconds and never steps back. */
export interface LimitState {
  /** 0 when a request may come now; else how long until it may, if nobody else comes. Infinity: only others can tell. Counts nothing. */
  waitUs(nowUs: number): number;
  /** Counts a request that every limit lets in. Gives how long the site holds it back before it starts to work on it. */
  take(nowUs: number): number;
  /** What the limit says about itself; undefined when it has no number of requests to say. */
  quota(nowUs: number): Quota | undefined;
  /** Behaves as if nobody had ever come, so that it can be dropped. */
  isFresh(nowUs: number): boolean;
}
