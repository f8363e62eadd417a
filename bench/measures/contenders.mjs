// @ts-check

/**
 * Who takes part. `rival` is a file in `rivals/`; `isGo` stands for the program in `go/`; `options` are handed to the rival as they are.
 *
 * @typedef {{ name: string; rival?: string; isGo?: boolean; options?: object; params?: object; note?: string }} Contender
 */

/** @type {Contender} */
export const politely = { name: "politely", rival: "politely" };
/** Stamped when the caller goes on, as the rivals are. @type {Contender} */
export const politelyByCaller = { name: "politely, caller's clock", rival: "politely", options: { byCaller: true } };
/** @type {Contender} */
export const go = { name: "Go x/time/rate", isGo: true };
/** @type {Contender} */
export const limiter = { name: "limiter", rival: "limiter" };
/** @type {Contender} */
export const pThrottle = { name: "p-throttle", rival: "pThrottle" };
/** @type {Contender} */
export const pQueue = { name: "p-queue", rival: "pQueue" };
/** @type {Contender} */
export const bottleneck = { name: "bottleneck", rival: "bottleneck" };
/** @type {Contender} */
export const flexible = { name: "rate-limiter-flexible", rival: "rateLimiterFlexible" };
/** @type {Contender} */
export const effect = { name: "effect", rival: "effect" };
/** @type {Contender} */
export const bare = { name: "bare minimum", rival: "bare" };
/** @type {Contender} */
export const bareWithPermit = { name: "bare, permit and counts", rival: "bare", options: { hasPermit: true } };
