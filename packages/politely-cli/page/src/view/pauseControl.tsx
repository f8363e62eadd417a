import { useState } from "preact/hooks";
import type { Host } from "../state/host.js";
import { ServiceError, send } from "../state/service.js";

/** Pauses a host, or resumes one that is paused. Rejects with what the service says against it. */
export async function pauseOrResume(
  { domain, state }: Pick<Host, "domain" | "state">,
  durationMs?: number,
): Promise<void> {
  if (state === "paused") await send("POST", "v1/resume", { domain });
  else await send("POST", "v1/pause", durationMs === undefined ? { domain } : { domain, durationMs });
}

const SPANS: readonly (readonly [name: string, ms: number | undefined])[] = [
  ["until resumed", undefined],
  ["for 1 minute", 60_000],
  ["for 10 minutes", 600_000],
  ["for 1 hour", 3_600_000],
];

/** The button that pauses and resumes, with how long. */
export function PauseControl({ host }: { readonly host: Host }) {
  const [span, setSpan] = useState(0);
  const [problem, setProblem] = useState("");
  const isPaused = host.state === "paused";
  const act = async (): Promise<void> => {
    try {
      await pauseOrResume(host, SPANS[span]?.[1]);
      setProblem("");
    } catch (error) {
      setProblem(error instanceof ServiceError ? error.message : String(error));
    }
  };
  return (
    <section class="pause" aria-label="Pause">
      <button type="button" class={isPaused ? "strong" : ""} onClick={() => void act()}>
        {isPaused ? "Resume" : "Pause"} <kbd>p</kbd>
      </button>
      {isPaused ? null : (
        <select aria-label="How long" value={span} onChange={(event) => setSpan(event.currentTarget.selectedIndex)}>
          {SPANS.map(([name], index) => (
            <option key={name} value={index}>
              {name}
            </option>
          ))}
        </select>
      )}
      <p class="problem" role="alert">
        {problem}
      </p>
    </section>
  );
}
