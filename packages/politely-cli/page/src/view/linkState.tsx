import type { Link } from "../state/feed.js";
import { useTicks } from "../state/hooks.js";
import { secondsText } from "./nextStart.js";

/** The connection, and what to do when it is gone. */
export interface LinkStateProps {
  readonly link: Link;
  readonly version: string;
  readonly onRetry: () => void;
}

/** Says whether what is shown is live. When the connection is lost it says why, and when it is tried again. */
export function LinkState({ link, version, onRetry }: LinkStateProps) {
  const isLost = link.kind === "lost";
  useTicks(500, isLost);
  const leftMs = isLost ? Math.max(0, link.retryAtMs - performance.now()) : 0;
  return (
    <div class={`link ${link.kind}`}>
      <span class="dot" aria-hidden="true" />
      <span role="status">
        {isLost ? `Connection lost. ${link.why}` : link.kind === "live" ? "Live" : "Connecting …"}
      </span>
      {isLost ? (
        <>
          <span class="retry">{leftMs > 0 ? `Trying again in ${secondsText(leftMs)}.` : "Trying again."}</span>
          <button type="button" onClick={onRetry}>
            Try now
          </button>
        </>
      ) : (
        <span class="version">{version}</span>
      )}
    </div>
  );
}
