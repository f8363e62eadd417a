import type { Clock } from "../../types.js";

/** As `answer` ends, or rejects with `late` when it has not ended within `ms`. */
export function within<Value>(clock: Clock, ms: number, answer: Promise<Value>, late: () => Error): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(clock.now() + ms, () => reject(late()));
    answer.then(
      (value) => {
        clock.clearTimer(timer);
        resolve(value);
      },
      (error: unknown) => {
        clock.clearTimer(timer);
        reject(error);
      },
    );
  });
}
