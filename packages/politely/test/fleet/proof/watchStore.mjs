// A store that counts what is asked of it and what it answers, and tells when the place of a start was given back.

/** What was asked about one host. @typedef {{ calls: number; granted: number; unheard: number }} Tally */

/**
 * Wraps `store`.
 *
 * `tallies` has for each host the calls, failed ones and repeated ones included; the starts granted, each operation counted once
 * however often it was sent; and the starts asked for in operations to which no answer was heard so far. `onSettled` hears the
 * host, the token and the store's time of every start that came back.
 *
 * @param {any} store
 * @param {(host: string, token: number, nowUs: number) => void} onSettled
 */
export function watchStore(store, onSettled) {
  /** @type {Record<string, Tally>} */
  const tallies = {};
  /** How many starts each operation asked for; 0 once an answer was heard. @type {Map<string, number>} */
  const asked = new Map();
  return {
    tallies,
    store: {
      name: store.name,
      timeline: store.timeline,
      /** @param {readonly string[]} keys @param {any} operation */
      async transact(keys, operation) {
        const host = hostOf(keys[0]);
        tallies[host] ??= { calls: 0, granted: 0, unheard: 0 };
        const tally = tallies[host];
        const name = `${operation.asker} ${operation.sequence}`;
        tally.calls += 1;
        if (operation.kind === "take" && !asked.has(name)) {
          asked.set(name, operation.count);
          tally.unheard += operation.count;
        }
        const reply = await store.transact(keys, operation);
        const unheard = asked.get(name) ?? 0;
        if (operation.kind === "take" && unheard > 0) {
          asked.set(name, 0);
          tally.unheard -= unheard;
          tally.granted += reply.starts.length;
        }
        if (operation.kind === "settle" && operation.isOver) onSettled(host, operation.token, reply.nowUs);
        return reply;
      },
    },
  };
}

/** @param {string} key */
function hostOf(key) {
  return key.slice(key.indexOf("host ") + "host ".length);
}
