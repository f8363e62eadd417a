export * from "./errors.js";
export type { Messages } from "./observe/log.js";
export type {
  Cause,
  Explanation,
  FleetStats,
  LimiterEvent,
  LimitKind,
  Stats,
  StatsSnapshot,
  WindowStats,
} from "./observe/types.js";
export { loadPolicy } from "./policy/loadPolicy.js";
export type { DomainLimits, HostLimits, HttpPolicy, Limits, PolicyInput, RetryPolicy } from "./policy/types.js";
export { limit, politely } from "./politely.js";
export type * from "./sharedTypes.js";
export type { Store } from "./stores/store.js";
export type * from "./types.js";
