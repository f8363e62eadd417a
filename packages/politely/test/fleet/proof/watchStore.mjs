// A store that counts what is asked of it and what it answers, and tells when the place of a start was given back.

/** What was asked about one host. @typedef {{ calls: number; granted: number; unheard: number; back: number; unheardBack: number }} Tally */

/**
 * Wraps `store`.
 *
 * `tallies` has for each host the calls, failed ones and repeated ones included; the starts granted, each operation counted once
 * however often it was sent; the starts asked for in operations to which no answer was heard so far; and the same of starts given back unused. `onSettled` hears the
 * host, the token and the store's time of every start that came back.
 *
 * @param {any} store
 * @param {(host: string, token: number, nowUs: number) => void} onSettled
 */
export function watchStore(store, onSettled) {
  /** @type {Record<string, Tally>} */
  const tallies = {};
  /** Takes: how often each was sent without an answer so far, and whether a start was granted. @type {Map<string, { open: number; isGranted: boolean }>} */
  const takes = new Map();
  /** Give-backs: how many starts; 0 once an answer was heard. @type {Map<string, number>} */
  const backs = new Map();
  /** Hosts and tokens of the starts that were counted. @type {Set<string>} */
  const granted = new Set();
  /** The token of the start in each place. @type {Map<string, number>} */
  const tokens = new Map();
  return {
    tallies,
    store: {
      name: store.name,
      timeline: store.timeline,
      ...(store.listen === undefined ? {} : { listen: store.listen.bind(store) }),
      /** @param {readonly string[]} keys @param {any} operation */
      async transact(keys, operation) {
        const host = hostOf(keys[0]);
        tallies[host] ??= { calls: 0, granted: 0, unheard: 0, back: 0, unheardBack: 0 };
        const tally = tallies[host];
        const name = `${operation.asker} ${operation.number}`;
        tally.calls += 1;
        const take = operation.kind === "take" ? (takes.get(name) ?? { open: 0, isGranted: false }) : undefined;
        if (take !== undefined) {
          takes.set(name, take);
          if (take.open++ === 0 && !take.isGranted) tally.unheard += operation.count;
        }
        const isBack = operation.kind === "settle" && operation.answer.kind === "unused";
        if (isBack && !backs.has(name)) {
          backs.set(name, 1);
          tally.unheardBack += 1;
        }
        const reply = await store.transact(keys, operation);
        if (take !== undefined && !take.isGranted) {
          take.open -= 1;
          // What was refused may have been sent again, and be granted then; what was granted is granted once.
          take.isGranted = reply.grants.length > 0;
          if (take.open === 0 || take.isGranted) tally.unheard -= operation.count;
          let which = 0;
          for (const { token, count } of reply.grants) {
            for (let nth = 0; nth < count; nth++, which++) {
              // Who asks again when the asker has gone on hears the answer to its next question: the same start is told of twice.
              if (!granted.has(`${host} ${token + nth}`)) tally.granted += 1;
              granted.add(`${host} ${token + nth}`);
              tokens.set(`${operation.asker}#${operation.number}#${which}`, token + nth);
            }
          }
        }
        if (isBack) {
          const back = backs.get(name) ?? 0;
          backs.set(name, 0);
          tally.unheardBack -= back;
          tally.back += back;
        }
        if (operation.kind === "settle" && operation.isOver)
          onSettled(host, tokens.get(operation.place) ?? 0, reply.nowUs);
        return reply;
      },
    },
  };
}

/** @param {string} key */
function hostOf(key) {
  return key.slice(key.indexOf("host ") + "host ".length);
}
