import type { HostState } from "../../../src/serve/feed/row.js";

/** What each state is called. */
export const STATE_WORDS: Readonly<Record<HostState, string>> = {
  flowing: "Flowing",
  waiting: "Waiting",
  cooling: "Cooling down",
  paused: "Paused",
  idle: "Idle",
};

/** One shape for each state, so that colour is never needed to tell them apart. */
const SHAPES: Readonly<Record<HostState, string>> = {
  flowing: "M2 2.5 10 6 2 9.5Z",
  waiting: "M6 1.5a4.5 4.5 0 1 0 .01 0ZM6 3a3 3 0 1 1-.01 0Z",
  cooling: "M6 .8 11.2 6 6 11.2.8 6Z",
  paused: "M2.5 2h2.4v8H2.5ZM7.1 2h2.4v8H7.1Z",
  idle: "M2 5.2h8v1.6H2Z",
};

/** The shape of a state, in its colour. It says nothing to a screen reader: the word stands beside it. */
export function StateMark({ state }: { readonly state: HostState }) {
  return (
    <svg class={`mark is-${state}`} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
      <path d={SHAPES[state]} fill="currentColor" fill-rule="evenodd" />
    </svg>
  );
}

/** Shape and word. */
export function StateWord({ state }: { readonly state: HostState }) {
  return (
    <span class={`state is-${state}`}>
      <StateMark state={state} />
      {STATE_WORDS[state]}
    </span>
  );
}
