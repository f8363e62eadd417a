/** Where a view gets its time from. Tests give their own. */
export interface Ticker {
  /** Milliseconds of `performance.now()`. */
  nowMs(): number;
  /** Calls `task` every so often until the function it returns is called. It keeps no process alive. */
  every(ms: number, task: () => void): () => void;
}

/** The machine's time. */
export const machineTicker: Ticker = {
  nowMs: () => performance.now(),
  every(ms, task) {
    const timer = setInterval(task, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
};
