import { type GetObserver, silentObserver } from "../get/observer.js";
import type { Io } from "../io.js";
import { LiveView } from "./liveView.js";
import { PlainView } from "./plainView.js";

/** How a run of `get` is shown. */
export interface GetViewOptions {
  /** Shows nothing at all. Default false. */
  readonly isQuiet?: boolean | undefined;
}

/**
 * What a person sees of a run, on stderr: bars in a terminal, a line every five seconds elsewhere, and a summary at the end.
 *
 * Give it to the run as its observer. Nothing is left behind in a terminal but log lines and the summary, however the run ends.
 */
export function createGetView(io: Io, options: GetViewOptions = {}): GetObserver {
  if (options.isQuiet === true) return silentObserver;
  return io.isTerminal ? new LiveView(io) : new PlainView(io);
}
