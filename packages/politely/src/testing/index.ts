export type {
  ListeningOrigin,
  ListenOptions,
  OriginAnswer,
  OriginAnswerDetails,
  OriginAnswerer,
  OriginBehaviour,
  OriginBounds,
  OriginCall,
  OriginCounts,
  OriginDelay,
  OriginFault,
  OriginLatency,
  OriginLimit,
  OriginLimitBase,
  OriginQuotaHeaders,
  OriginRefusal,
  OriginRequest,
  OriginRetryAfter,
} from "./origin/types.js";
export { VirtualClock, type VirtualClockOptions } from "./virtualClock.js";
export { VirtualOrigin, type VirtualOriginOptions } from "./virtualOrigin.js";
