import type { Relay } from "../exchange.js";

interface AsyncHooks {
  readonly AsyncLocalStorage: new () => Relay;
}

/** A relay by async context; undefined where there is none. There a limiter's own `fetch` is counted again by a dispatcher that it paces. */
export function asyncRelay(): Relay | undefined {
  const { process } = globalThis as {
    process?: { getBuiltinModule?(name: "node:async_hooks"): AsyncHooks | undefined };
  };
  const hooks = process?.getBuiltinModule?.("node:async_hooks");
  return hooks === undefined ? undefined : new hooks.AsyncLocalStorage();
}
