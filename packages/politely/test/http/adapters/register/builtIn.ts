import type { Agent, fetch } from "undici";

// Node makes its own dispatcher when this is first asked for, unless a copy of undici has made one before. So this file has
// to be loaded first.
void globalThis.Headers;
const globals = globalThis as unknown as Record<symbol, Agent | undefined>;
const [first, second] = [1, 2].map((version) => globals[Symbol.for(`undici.globalDispatcher.${version}`)]);
const BuiltInAgent = (second ?? first)?.constructor as new () => Agent;

/** A new agent of the undici that is built into Node. */
export function builtInAgent(): Agent {
  return new BuiltInAgent();
}

/** Node's own `fetch`, as a copy of undici types it. */
export const builtInFetch = globalThis.fetch as unknown as typeof fetch;
