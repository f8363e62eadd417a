import type { Explanation } from "politely";
import { useState } from "preact/hooks";
import type { Host } from "../state/host.js";
import { read, ServiceError, send } from "../state/service.js";

type Causes = readonly Pick<Explanation["causes"][number], "limit" | "scope">[];

/** Pauses a host, or resumes one that is paused. Rejects with what the service says against it, and when everything is paused: then it stays so. */
export async function pauseOrResume(
  { domain, state }: Pick<Host, "domain" | "state">,
  durationMs?: number,
): Promise<void> {
  if (state !== "paused") {
    await send("POST", "v1/pause", durationMs === undefined ? { domain } : { domain, durationMs });
    return;
  }
  await send("POST", "v1/resume", { domain });
  const { causes } = await read<{ causes: Causes }>(`v1/explain/${encodeURIComponent(domain)}`);
  if (isAllPaused(causes)) throw new ServiceError(409, ALL_PAUSED);
}

/** Whether what holds a host is a pause of all hosts. */
export function isAllPaused(causes: Causes): boolean {
  return causes.some(({ limit, scope }) => limit === "pause" && scope === "all");
}

const ALL_PAUSED = "Everything is paused: no host can be resumed alone.";

const SPANS: readonly (readonly [name: string, ms: number | undefined])[] = [
  ["until resumed", undefined],
  ["for 1 minute", 60_000],
  ["for 10 minutes", 600_000],
  ["for 1 hour", 3_600_000],
];

/** The button that pauses and resumes, with how long. */
export function PauseControl({ host, isAll }: { readonly host: Host; readonly isAll: boolean }) {
  const [span, setSpan] = useState(0);
  const [problem, setProblem] = useState("");
  const isPaused = host.state === "paused";
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
      setProblem("");
    } catch (error) {
      setProblem(error instanceof ServiceError ? error.message : String(error));
    }
  };
  if (isAll) {
    return (
      <section class="pause" aria-label="Pause">
        <button type="button" class="strong" onClick={() => void attempt(() => send("POST", "v1/resume", {}))}>
          Resume all hosts
        </button>
        <p class="problem" role="alert">
          {problem || ALL_PAUSED}
        </p>
      </section>
    );
  }
  return (
    <section class="pause" aria-label="Pause">
      <button
        type="button"
        class={isPaused ? "strong" : ""}
        onClick={() => void attempt(() => pauseOrResume(host, SPANS[span]?.[1]))}
      >
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
