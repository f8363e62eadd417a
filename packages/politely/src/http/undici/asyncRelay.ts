import type { Loan } from "../../engine/limiter.js";
import type { Permit, Target } from "../../types.js";
import type { Exchange, Relay, Taken } from "../exchange.js";
import { Flight } from "../flight.js";

/** Somebody on whose behalf requests are made. */
interface Principal {
  readonly target: Target;
  /** What was admitted and not sent yet. Undefined once a dispatcher has taken it over, or the principal is done. */
  flight: Flight | undefined;
  /** The permit of a task that may do anything: robots.txt was not asked for it. */
  readonly permit?: Permit;
  /** On whose behalf this one acts. Undefined once it is done, so that tasks which begin one another make no endless chain. */
  outer: Principal | undefined;
}

/** The part of Node's `AsyncLocalStorage` that is called here. */
interface AsyncContext {
  run<Value>(store: Principal, act: () => Value): Value;
  getStore(): Principal | undefined;
}

interface AsyncHooks {
  readonly AsyncLocalStorage: new () => AsyncContext;
}

/** A relay by async context; undefined where there is none. There what a limiter has admitted is counted again by a dispatcher that it paces. */
export function asyncRelay(exchange: Exchange): Relay | undefined {
  const { process } = globalThis as {
    process?: { getBuiltinModule?(name: "node:async_hooks"): AsyncHooks | undefined };
  };
  const hooks = process?.getBuiltinModule?.("node:async_hooks");
  return hooks === undefined ? undefined : new AsyncRelay(exchange, new hooks.AsyncLocalStorage());
}

class AsyncRelay implements Relay {
  constructor(
    readonly exchange: Exchange,
    readonly context: AsyncContext,
  ) {}

  async send<Value>(url: string, flight: Flight, send: () => Promise<Value>): Promise<Value> {
    const principal: Principal = { target: url, flight, outer: this.context.getStore() };
    try {
      return await this.context.run(principal, send);
    } finally {
      end(principal);
    }
  }

  lend(target: Target, permit: Permit): Loan {
    const flight = new Flight(permit, this.exchange.pacer.clock);
    const principal: Principal = { target, flight, permit, outer: this.context.getStore() };
    return {
      run: (task) => this.context.run(principal, task),
      end: () => {
        const isTaken = principal.flight === undefined;
        end(principal);
        return isTaken;
      },
    };
  }

  take(url: string): Taken | undefined {
    for (let principal = this.context.getStore(); principal !== undefined; principal = principal.outer) {
      const { flight, permit } = principal;
      if (flight === undefined || flight.isOver || !this.#isOneKey(url, principal.target)) continue;
      principal.flight = undefined;
      if (permit === undefined) return { flight: flight.lend(), isAsked: true };
      const { isReleased = false } = permit as { readonly isReleased?: boolean };
      const { gate, pacer } = this.exchange;
      return isReleased ? undefined : { flight, isAsked: gate === undefined || pacer.http().robots === undefined };
    }
    return undefined;
  }

  #isOneKey(url: string, other: Target): boolean {
    const { pacer } = this.exchange;
    try {
      return url === other || pacer.keyOf(url) === pacer.keyOf(other);
    } catch {
      // What is no target is refused when it is to be admitted.
      return false;
    }
  }
}

/** Whatever else is begun on its behalf is a request of its own. */
function end(principal: Principal): void {
  principal.flight = undefined;
  principal.outer = undefined;
}
