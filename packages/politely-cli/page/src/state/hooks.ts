import { useEffect, useReducer, useState } from "preact/hooks";
import type { Feed } from "./feed.js";
import { read, ServiceError } from "./service.js";

/** Draws the component again whenever the feed has changed. */
export function useFeed(feed: Feed): void {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => feed.subscribe(() => redraw(undefined)), [feed]);
}

/** Draws the component again every `everyMs` while `isWanted`. */
export function useTicks(everyMs: number, isWanted = true): void {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    if (!isWanted) return undefined;
    const timer = window.setInterval(() => redraw(undefined), everyMs);
    return () => window.clearInterval(timer);
  }, [everyMs, isWanted]);
}

/** What was read last from the service, and why the last reading failed, if it did. */
export interface Polled<T> {
  readonly value: T | undefined;
  readonly problem: string | undefined;
}

/** Reads `path` now and then every `everyMs`, while the page is seen. Another path begins without a value. */
export function usePolled<T>(path: string, everyMs: number): Polled<T> {
  const [polled, setPolled] = useState<Polled<T> & { readonly path: string }>({
    path,
    value: undefined,
    problem: undefined,
  });
  useEffect(() => {
    const abort = new AbortController();
    let isAsking = false;
    const poll = async (): Promise<void> => {
      if (isAsking || document.hidden) return;
      isAsking = true;
      try {
        const value = await read<T>(path, abort.signal);
        if (!abort.signal.aborted) setPolled({ path, value, problem: undefined });
      } catch (error) {
        const problem = error instanceof ServiceError ? error.message : "The service cannot be reached.";
        if (!abort.signal.aborted)
          setPolled((before) => ({ path, value: before.path === path ? before.value : undefined, problem }));
      } finally {
        isAsking = false;
      }
    };
    void poll();
    const timer = window.setInterval(() => void poll(), everyMs);
    return () => {
      window.clearInterval(timer);
      abort.abort();
    };
  }, [path, everyMs]);
  return polled.path === path ? polled : { value: undefined, problem: undefined };
}
