import type { Explanation } from "politely";
import { useEffect, useRef } from "preact/hooks";
import { rateText } from "../../../src/view/amounts.js";
import { countText, durationText } from "../../../src/words.js";
import { usePolled, useTicks } from "../state/hooks.js";
import { type Host, usedPerSecond } from "../state/host.js";
import { LimitsForm } from "./limitsForm.js";
import { NextStart, secondsText } from "./nextStart.js";
import { isAllPaused, PauseControl } from "./pauseControl.js";
import { reasonText } from "./reasonText.js";
import { StateWord } from "./stateMark.js";
import { TimelineChart } from "./timelineChart.js";

/** The host that is looked at closely. */
export interface HostDetailProps {
  readonly host: Host;
  readonly isWritable: boolean;
  readonly onClose: () => void;
}

/** As it comes in JSON: a wait without end is null. */
type Told = Omit<Explanation, "waitMs" | "causes"> & {
  readonly causes: readonly (Omit<Explanation["causes"][number], "waitMs"> & { readonly waitMs: number | null })[];
};

/** Everything about one host: why it waits, when it goes on, its rate, its limits, and what can be done. */
export function HostDetail({ host, isWritable, onClose }: HostDetailProps) {
  const { domain } = host;
  const heading = useRef<HTMLHeadingElement>(null);
  const { value: told, problem } = usePolled<Told>(`v1/explain/${encodeURIComponent(domain)}`, 1_000);
  // Where reading goes on, for those who see and those who listen.
  useEffect(() => heading.current?.focus(), [domain]);
  return (
    <aside class="detail" aria-label={`Host ${domain}`}>
      <header>
        <h2 ref={heading} tabIndex={-1}>
          {domain}
        </h2>
        <button type="button" class="plain" aria-label="Close" title="Close (Esc)" onClick={onClose}>
          ✕
        </button>
      </header>
      <p class="now">
        <StateWord state={host.state} />
        <span class="next">
          next start{" "}
          <b>
            {host.waiting === 0 && host.until === null && host.state !== "paused" ? (
              "at once"
            ) : (
              <NextStart host={host} />
            )}
          </b>
        </span>
      </p>
      <Causes told={told} problem={problem} />
      <Usage host={host} />
      <TimelineChart domain={domain} heightPx={110} />
      <Facts host={host} origin={told?.origin} />
      {isWritable ? (
        <>
          <PauseControl host={host} isAll={isAllPaused(told?.causes ?? [])} />
          {told === undefined ? null : <LimitsForm key={domain} domain={domain} origin={told.origin} />}
        </>
      ) : (
        <p class="note">
          Looking only: start the service with --allow-writes, or with a token, to pause hosts and change limits here.
        </p>
      )}
    </aside>
  );
}

function Causes({ told, problem }: { readonly told: Told | undefined; readonly problem: string | undefined }) {
  if (told === undefined) return <p class="note">{problem ?? "Asking why …"}</p>;
  if (told.proceed) return <p class="note">Nothing holds it: a request would start at once.</p>;
  return (
    <section aria-label="Why it waits">
      <h3>What a request asked for now would wait for</h3>
      <ol class="causes">
        {told.causes.map(({ limit, scope, key, waitMs, message, because }) => (
          <li key={`${limit} ${scope} ${key}`}>
            <span class="left">{waitMs === null ? "no end" : waitMs < 1_000 ? "< 1 s" : secondsText(waitMs)}</span>
            <span>
              {reasonText(told.key, message)}
              {because === undefined || message.includes(because) ? null : <i> {because}</i>}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** Rate used against rate allowed. */
function Usage({ host }: { readonly host: Host }) {
  const { allowedPerSecond } = host;
  const perSecond = usedPerSecond(host);
  if (allowedPerSecond === null) {
    return (
      <p class="usage">
        <b>{rateText(perSecond)}</b> over the last 10 s; no limit on the pace
      </p>
    );
  }
  const share = perSecond / allowedPerSecond;
  const percent = Math.round(share * 100);
  return (
    <div class="usage">
      <span>
        <b>{rateText(perSecond)}</b> used of <b>{rateText(allowedPerSecond)}</b> allowed, {percent}%
      </span>
      {/* biome-ignore lint/a11y/useSemanticElements: browsers draw a meter element each in their own colours */}
      <div
        class="gauge large"
        role="meter"
        aria-label="Rate used of rate allowed"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.min(100, percent)}
      >
        <span style={{ transform: `scaleX(${Math.min(1, share).toFixed(3)})` }} />
      </div>
    </div>
  );
}

function Facts({ host, origin }: { readonly host: Host; readonly origin: string | undefined }) {
  useTicks(1_000);
  const { waiting, inFlight, total, throttled, lastAt, limits } = host;
  const facts: readonly (readonly [string, string])[] = [
    ["Waiting", countText(waiting)],
    ["In flight", countText(inFlight)],
    ["Starts", countText(total)],
    ["429s", countText(throttled)],
    [
      "Last start",
      lastAt === null ? "none" : `${durationText(Math.max(0, Math.floor((Date.now() - lastAt) / 1_000) * 1_000))} ago`,
    ],
    ["Limits", limits],
    ["Set by", origin ?? "…"],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
