import type { UntimedEvent } from "../observe/types.js";
import type { HttpRules } from "../policy/types.js";
import type { Slowdown } from "../scheduler/slowdowns.js";
import type { AcquireOptions, Clock, Permit, Target } from "../types.js";

/** What an exchange needs of a limiter. */
export interface Pacer {
  readonly clock: Clock;
  /** From 0 up to but not including 1. */
  random(): number;
  /** How requests are made by the policy now in force. */
  http(): HttpRules;
  /** Grants at once, or promises to. Throws when it is refused. */
  enter(target: Target, options?: AcquireOptions): Permit | Promise<Permit>;
  keyOf(target: Target): string;
  /** Whether the target's host is told to stay away, and the limiter sees to it. Never for a host that is not paced. */
  isCooling(target: Target): boolean;
  /** The preset of a key whose site wants to know how to reach the caller. */
  contactWantedBy(key: string): string | undefined;
  /** Sets what robots.txt asks of a target's host; undefined when it asks nothing. */
  slowByRobots(target: Target, slowdown: Slowdown | undefined): void;
  /** Tells whoever listens. */
  tell(event: UntimedEvent): void;
}
