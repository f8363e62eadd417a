export type { HeadersLike } from "../../types.js";
export type { AnyHeaders } from "./collectFields.js";
export {
  parseRateLimit,
  type RateLimit,
  type RateLimitBucket,
  type RateLimitOptions,
} from "./parseRateLimit.js";
export type { QuotaPolicy } from "./rateLimitField.js";
export { parseRetryAfter } from "./retryAfter.js";
