const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array;

/**
 * Calls `step` before and after everything by which `work` touches shared memory: the moments at which a thread may be ended or stand still.
 *
 * What `step` itself does is not watched.
 */
export function stepping<Result>(step: () => void, work: () => Result): Result {
  let isInStep = false;
  const watched = (): void => {
    if (isInStep) return;
    isInStep = true;
    try {
      step();
    } finally {
      isInStep = false;
    }
  };
  const restores = [
    watch(Atomics, "load", watched),
    watch(Atomics, "add", watched),
    watch(Atomics, "compareExchange", watched),
    watch(typedArray, "set", watched),
  ];
  try {
    return work();
  } finally {
    for (const restore of restores) restore();
  }
}

function watch(owner: object, name: string, step: () => void): () => void {
  const original: unknown = Reflect.get(owner, name);
  if (typeof original !== "function") throw new TypeError(`${name} is no function`);
  Reflect.set(owner, name, function watchedStep(this: unknown, ...args: unknown[]): unknown {
    step();
    const result: unknown = Reflect.apply(original, this, args);
    step();
    return result;
  });
  return () => Reflect.set(owner, name, original);
}

/** What a thread throws when it is ended. */
class Ended extends Error {}

/** Ends `work` at its step number `atStep`, for good: it cannot do anything afterwards. Whether it came to that. */
export function endedAt(atStep: number, work: () => void): boolean {
  let steps = 0;
  const step = (): void => {
    steps += 1;
    if (steps >= atStep) throw new Ended();
  };
  try {
    stepping(step, work);
  } catch (error) {
    if (!(error instanceof Ended)) throw error;
    return true;
  }
  return false;
}

/** Lets `others` do something at step number `atStep` of `work`. Whether it came to that. */
export function pausedAt(atStep: number, work: () => void, others: () => void): boolean {
  let steps = 0;
  const step = (): void => {
    steps += 1;
    if (steps === atStep) others();
  };
  stepping(step, work);
  return steps >= atStep;
}
