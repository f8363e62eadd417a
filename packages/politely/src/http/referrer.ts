/** Where a request says it comes from, and how much of that may be told. */
export interface Referral {
  /** A URL; empty when nothing is told. */
  readonly referrer: string;
  /** Empty for the standard's default. */
  readonly referrerPolicy: ReferrerPolicy;
}

const POLICY = /^(?:no-referrer(?:-when-downgrade)?|unsafe-url|same-origin|(?:strict-)?origin(?:-when-cross-origin)?)$/;

/** The referral of a request; undefined when it names no referrer of its own, as nearly none does. */
export function referralOf({ referrer, referrerPolicy = "" }: RequestInit): Referral | undefined {
  if (referrer === undefined || referrer === "" || referrer === "about:client") return undefined;
  return { referrer: String(referrer), referrerPolicy };
}

/**
 * The referral after a redirect at `url`, by the rules of the fetch standard: what was told there is all that later hops
 * may tell, and the last policy known of the answer's `Referrer-Policy` holds from then on.
 */
export function nextReferral({ referrer, referrerPolicy }: Referral, url: string, header: string | null): Referral {
  const named = header?.split(",").map((name) => name.trim());
  const policy = named?.filter((name) => POLICY.test(name)).pop() as ReferrerPolicy | undefined;
  return {
    referrer: referrer === "" ? "" : toldAt(new URL(url), new URL(referrer), referrerPolicy),
    referrerPolicy: policy ?? referrerPolicy,
  };
}

/**
 * What a request tells of its referrer. No policy is `strict-origin-when-cross-origin`. Under `same-origin` and
 * `origin-when-cross-origin` Node takes every request to cross origins: no more is told here.
 */
function toldAt(to: URL, from: URL, policy: ReferrerPolicy): string {
  const isDowngrade = from.protocol === "https:" && to.protocol === "http:";
  const isSilent =
    /^(?:no-referrer|same-origin)$/.test(policy) || (isDowngrade && /^$|^strict|downgrade$/.test(policy));
  if (isSilent || from.origin === "null") return "";
  const isWhole = /^unsafe|^no-/.test(policy) || (/^$|^strict.*cross/.test(policy) && from.origin === to.origin);
  return isWhole ? from.href : `${from.origin}/`;
}
