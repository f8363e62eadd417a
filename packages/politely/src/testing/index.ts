export { auditTrace, createTraceAudit } from "./audit/auditTrace.js";
export type {
  AuditedKey,
  AuditLimit,
  AuditOptions,
  AuditPeak,
  AuditReport,
  AuditViolation,
  IgnoredRetryAfter,
  StatusCount,
  TraceAudit,
  TraceEntry,
  TraceInstant,
  TraceMark,
} from "./audit/types.js";
export type {
  HttpAnswer,
  HttpCase,
  HttpClient,
  HttpFeature,
  HttpRequest,
  HttpSuiteOptions,
} from "./httpSuite.js";
export { httpSuite } from "./httpSuite.js";
export type { OriginCounts } from "./origin/counts.js";
export type {
  ListeningOrigin,
  ListenOptions,
  OriginAnswer,
  OriginAnswerDetails,
  OriginAnswerer,
  OriginBehaviour,
  OriginCall,
  OriginDelay,
  OriginFault,
  OriginLatency,
  OriginLimit,
  OriginQuotaHeaders,
  OriginRefusal,
  OriginRequest,
  OriginRetryAfter,
  VirtualOriginOptions,
} from "./origin/types.js";
export type { OpenStore } from "./store/world.js";
export { type StoreCase, storeSuite } from "./storeSuite.js";
export { VirtualClock, type VirtualClockOptions } from "./virtualClock.js";
export { VirtualOrigin } from "./virtualOrigin.js";
