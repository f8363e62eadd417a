import { useEffect, useState } from "preact/hooks";
import type { Feed, StateChange } from "../state/feed.js";
import { STATE_WORDS } from "./stateMark.js";

/** Not more often than this: a screen reader reads slower than hosts change. */
const EVERY_MS = 5_000;
const NAMED = 3;

/** Tells screen readers which hosts began to cool down or were paused or resumed, all together every five seconds. */
export function Announcer({ feed, selected }: { readonly feed: Feed; readonly selected: string | undefined }) {
  const [text, setText] = useState("");
  useEffect(() => {
    const timer = window.setInterval(() => {
      const words = announcement(feed.takeChanges(), selected);
      if (words !== "") setText(words);
    }, EVERY_MS);
    return () => window.clearInterval(timer);
  }, [feed, selected]);
  return (
    <div class="unseen" role="status" aria-live="polite">
      {text}
    </div>
  );
}

/** What is worth saying of some changes: those to and from a pause or cooldown, and all of the host that is open. The last of each host counts. */
export function announcement(changes: readonly StateChange[], selected: string | undefined): string {
  const last = new Map<string, StateChange>();
  for (const change of changes) {
    const from = last.get(change.domain)?.from ?? change.from;
    last.set(change.domain, { ...change, from });
  }
  const isHeld = (state: StateChange["to"]): boolean => state === "cooling" || state === "paused";
  const said = [...last.values()].filter(
    ({ domain, from, to }) => from !== to && (domain === selected || isHeld(from) || isHeld(to)),
  );
  const named = said.slice(0, NAMED).map(({ domain, to }) => `${domain}: ${STATE_WORDS[to].toLowerCase()}`);
  if (said.length > NAMED) named.push(`and ${said.length - NAMED} more hosts`);
  return named.join(", ");
}
