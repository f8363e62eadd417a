import type { Permit } from "../../types.js";

/** Waits for an answer, or until the signal is aborted: then it rejects with the reason, and a permit that comes later goes back unused. */
export function unlessAborted<Answer extends { readonly permit?: Permit }>(
  asking: Promise<Answer>,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(signal.reason);
      asking.then(({ permit }) => permit?.release("unused")).catch(() => undefined);
    };
    signal.addEventListener("abort", abort, { once: true });
    asking.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
