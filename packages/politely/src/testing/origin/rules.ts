import type { LimitState } from "./limits/limitState.js";
import type { OriginAnswerer, OriginFault, OriginQuotaHeaders } from "./types.js";

/** A delay that has been checked. */
export type DelayRule =
  | { readonly kind: "fixed"; readonly ms: number }
  | { readonly kind: "uniform"; readonly minMs: number; readonly maxMs: number }
  | { readonly kind: "log-normal"; readonly medianMs: number; readonly sigma: number; readonly maxMs: number };

/** A latency that has been checked. */
export type LatencyRule = DelayRule | { readonly kind: "queue"; readonly service: DelayRule; readonly workers: number };

/** A limit that has been checked, and how to make its state for one client. */
export interface LimitRule {
  readonly name: string;
  /** The field that tells clients apart, in lower case. Undefined: all of the host count together. */
  readonly header: string | undefined;
  readonly afterCount: number;
  readonly status: number | undefined;
  /** `wallOffsetUs` turns the clock into the origin's wall clock by addition. */
  readonly make: (wallOffsetUs: number) => LimitState;
}

/** What `Retry-After` says, checked: the text, or what is done to the true wait. Undefined: the field is absent. */
export type RetryAfterRule =
  | { readonly text: string }
  | { readonly isDate: boolean; readonly isTrue: boolean; readonly times: number; readonly plusMs: number }
  | undefined;

/** What is sent after the headers. */
export interface BodyRule {
  /** The bytes, or how many letters to make up. */
  readonly content: Uint8Array<ArrayBuffer> | number;
  readonly sendMs: number;
  readonly type: string | undefined;
}

/** An answer that has been checked. */
export interface AnswerRule {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: the plain line. */
  readonly body: BodyRule | undefined;
  readonly etag: string | undefined;
  readonly latencyMs: number | undefined;
  readonly fault: OriginFault | undefined;
}

/** How a host behaves, checked and with all defaults filled in. */
export interface Behaviour {
  readonly limits: readonly LimitRule[];
  readonly refusal: {
    readonly statuses: readonly number[];
    readonly retryAfter: RetryAfterRule;
    readonly latency: LatencyRule;
    readonly body: BodyRule;
  };
  readonly quotaHeaders: Required<OriginQuotaHeaders> | undefined;
  readonly answers: readonly AnswerRule[] | OriginAnswerer;
  readonly pages: ReadonlyMap<string, AnswerRule>;
  readonly latency: LatencyRule;
  readonly travel: DelayRule;
  readonly headers: Readonly<Record<string, string>>;
  readonly wallSkewMs: number;
  readonly hasDate: boolean;
}
