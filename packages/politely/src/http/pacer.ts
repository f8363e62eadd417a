import type { Answer } from "../core/answer.js";
import type { Slowdown } from "../core/key.js";
import type { UntimedEvent } from "../observe/types.js";
import type { HttpRules } from "../policy/types.js";
import type { AcquireOptions, Clock, Outcome, Permit, Target } from "../types.js";

/** What an exchange needs of a limiter. */
export interface Pacer {
  readonly clock: Clock;
  /** Understands how a request to a key was answered. */
  readOutcome(outcome: Outcome, key: string): Answer;
  /** From 0 up to but not including 1. */
  random(): number;
  /** How requests are made by the policy now in force. */
  http(): HttpRules;
  /** Grants at once, or promises to. Throws when it is refused. */
  enter(target: Target, options?: AcquireOptions): Permit | Promise<Permit>;
  keyOf(target: Target): string;
  /** How long the target's host is still told to stay away, where the limiter sees to it; 0 when it is not, and for a host that is not paced. */
  coolingMs(target: Target): number;
  /** The preset of a key whose site wants to know how to reach the caller. */
  contactWantedBy(key: string): string | undefined;
  /** Sets what robots.txt asks of a target's host; undefined when it asks nothing. */
  slowByRobots(target: Target, slowdown: Slowdown | undefined): void;
  /** Tells whoever listens. */
  tell(event: UntimedEvent): void;
}
