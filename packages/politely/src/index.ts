export type { PolicyProblem } from "./errors.js";
export {
  CapacityError,
  ClosedError,
  DeadlineError,
  PolicyError,
  PolitelyError,
  QueueFullError,
  RobotsError,
  StoreError,
} from "./errors.js";
export type { Messages } from "./observe/log.js";
export type { Cause, Explanation, FleetStats, LimiterEvent, LimitKind, Stats, WindowStats } from "./observe/types.js";
export { loadPolicy } from "./policy/loadPolicy.js";
export type { HostLimits, HttpPolicy, Limits, PolicyInput, RetryPolicy } from "./policy/types.js";
export { limit, politely } from "./politely.js";
export type {
  AnyLimiter,
  SharedKeyLimiter,
  SharedLimiter,
  SharedOptions,
  SharedPermit,
  StatsOptions,
} from "./sharedTypes.js";
export type { Store } from "./stores/store.js";
export type {
  AcquireOptions,
  Clock,
  Decision,
  Duration,
  FetchOptions,
  HeadersLike,
  KeyLimiter,
  Limiter,
  LimiterOptions,
  Logger,
  OtherFetch,
  Outcome,
  OutcomeKind,
  Permit,
  PoliteRequestInit,
  Rate,
  RecordOptions,
  ReleaseOptions,
  ResetWhat,
  Target,
} from "./types.js";
