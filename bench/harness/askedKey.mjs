// @ts-check

/**
 * A key as a limiter asks a store for it, with the defaults of a policy for all that is not given.
 *
 * @param {{ rateCount: number; ratePerUs: number; burst: number; windows?: readonly { count: number; perUs: number; grainUs: number }[]; concurrency?: number }} limits
 */
export function askedKey({ windows = [], concurrency = Number.POSITIVE_INFINITY, ...bucket }) {
  /** @type {"none"} */
  const kind = "none";
  const rule = {
    enabled: true,
    gapUs: 0,
    ...bucket,
    windows,
    quota: undefined,
    concurrency,
    fromAnswer: false,
    backoff: { kind, baseUs: 0, maxUs: 0, jitter: 0 },
    cooldownUs: [60_000_000],
    maxWaitUs: Number.POSITIVE_INFINITY,
    maxQueue: 100_000,
    maxHoldUs: 600_000_000,
    permitTtlUs: 30_000_000,
    adaptive: undefined,
    text: {
      minDelay: undefined,
      rate: "fast",
      quota: undefined,
      concurrency: String(concurrency),
      windows: windows.map(() => "long"),
    },
  };
  return { rule, cost: { rate: 1, window: 1, quota: 1 }, slowUs: 0 };
}

/**
 * Asks for one start, now or never: a list of one, or an empty one.
 *
 * @param {import("politely").Store} store @param {readonly string[]} names @param {readonly ReturnType<typeof askedKey>[]} keys @param {string} asker @param {number} number
 * @returns {Promise<readonly import("../../node_modules/politely/dist/stores/operations.js").Grant[]>}
 */
export async function takeNow(store, names, keys, asker, number, doesWait = false) {
  const once = { count: 1, horizonUs: 2_000, grainUs: 1, doesWait, isTold: false };
  const { grants } = await store.transact(names, { kind: "take", asker, number, isAgain: false, keys, ...once });
  return grants;
}

/**
 * Takes one start that is there.
 *
 * @param {import("politely").Store} store @param {readonly string[]} names @param {readonly ReturnType<typeof askedKey>[]} keys @param {string} asker @param {number} number
 */
export async function takeOne(store, names, keys, asker, number) {
  if ((await takeNow(store, names, keys, asker, number)).length !== 1) throw new Error(`${store.name} refused a start`);
}
