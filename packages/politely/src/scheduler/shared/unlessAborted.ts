import type { SharedPermit } from "../../sharedTypes.js";

/** Waits for a permit, or until the signal is aborted: then it rejects with the reason, and what is granted later goes back unused. */
export function unlessAborted(
  asking: Promise<SharedPermit | undefined>,
  signal: AbortSignal,
): Promise<SharedPermit | undefined> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(signal.reason);
      asking.then((permit) => permit?.release("unused")).catch(() => undefined);
    };
    signal.addEventListener("abort", abort, { once: true });
    asking.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
