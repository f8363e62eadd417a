import type { Engine } from "./engine/engine.js";
import { LocalLimiter } from "./engine/limiter.js";
import { systemClock } from "./engine/systemClock.js";
import { FleetArbiter } from "./fleet/fleetArbiter.js";
import { Link } from "./fleet/link.js";
import { Outage } from "./fleet/outage.js";
import { Places } from "./fleet/places.js";
import { StoreLimiter } from "./fleet/sharedLimiter.js";
import { exchangeOf, registerExchange } from "./http/exchange.js";
import { keyLimiterOf } from "./keyLimiter.js";
import { durationUs } from "./policy/duration.js";
import type { SharedKeyLimiter, SharedOptions } from "./sharedTypes.js";
import { type ChangeLimits, type MakeFront, provideSharing } from "./sharing.js";
import { storeProblem } from "./stores/storeProblem.js";

/** What happens while the store is away, as the end of a sentence. */
const SAYS = {
  share: ({ isKnown, members }: Outage) =>
    `this process keeps 1/${members} of each limit until it is back, ${isKnown ? "by the processes last seen" : "since it never heard how many share them"}`,
  closed: () => "every request is refused with a StoreError until it is back",
  open: () => "every request passes until it is back, but to a host that this process heard say stop",
} as const;

// Entries of stores import this file for it.
provideSharing({ limiter: shareLimiter, keyLimiter: shareKeyLimiter });

/** Puts a limiter together whose limits are kept in a store. */
function shareLimiter(options: SharedOptions, makeFront: MakeFront): StoreLimiter {
  const { store, name = "", outage: policy = "share", batch: isBatch = false, ...own } = options;
  checkShared(options);
  const clock = options.clock ?? systemClock();
  const process = processName();
  let made: { engine: Engine; arbiter: FleetArbiter } | undefined;
  const parts = (): { engine: Engine; arbiter: FleetArbiter } => {
    if (made === undefined) throw new Error("The engine is made before anything asks for it.");
    return made;
  };
  const say = (isAway: boolean, message: string): void => front.tell({ type: "outage", key: "*", isAway, message });
  const link = new Link({
    store,
    clock,
    onAway: (failure) => {
      say(true, `${store.name} is away: ${failure.message.replace(/\.$/, "")}; ${SAYS[policy](outage)}`);
      if (policy === "share") outage.begin();
      const { queue } = parts().engine;
      if (policy === "closed") queue.refuseAll(queue.lanes.values(), failure);
      parts().arbiter.askAnew();
    },
    onBack: (send) => outage.tell(send),
    onReturn: (awayMs) => {
      outage.end();
      say(false, `${store.name} is back after ${awayMs} ms`);
      parts().arbiter.askAnew();
    },
  });
  const places = new Places(clock, link, process);
  const outage = new Outage(link, places, { process, name, storeName: store.name });
  const front = makeFront({ ...own, clock }, (given) => {
    const makeArbiter = (engine: Engine): FleetArbiter => {
      const arbiter = new FleetArbiter(engine, link, places, outage, { process, name, isBatch, outage: policy });
      made = { engine, arbiter };
      outage.attach(engine);
      return arbiter;
    };
    return new LocalLimiter({ ...given, makeArbiter });
  });
  const readPause = (value: unknown): number => durationUs(value, "duration", { allowInfinity: true });
  const limiter = new StoreLimiter({ front, ...parts(), readPause });
  registerExchange(limiter, exchangeOf(front, "politely"));
  return limiter;
}

/** The same for one key. `change` takes limits that apply from the next `configure` on. */
function shareKeyLimiter(
  options: SharedOptions,
  key: string,
  makeFront: MakeFront,
  change: ChangeLimits,
): SharedKeyLimiter {
  if (options.name === undefined || options.name === "") {
    throw new TypeError(
      'limit with a store needs a name: all with the same name share one key. Write { store, name: "mail" }.',
    );
  }
  const shared = shareLimiter(options, makeFront);
  const keyLimiter = keyLimiterOf<SharedKeyLimiter>(shared, key, (changed) => {
    change(changed);
    return shared.configure({});
  });
  registerExchange(keyLimiter, exchangeOf(shared, "limit"));
  return keyLimiter;
}

function checkShared({ store, name, outage, batch }: SharedOptions): void {
  if (name !== undefined && (typeof name !== "string" || name.length > NAME_MOST)) {
    throw new TypeError(`name must be a text of at most ${NAME_MOST} characters; got ${String(name)}.`);
  }
  const problem = storeProblem(store);
  if (problem !== undefined) throw new TypeError(problem);
  if (outage !== undefined && outage !== "share" && outage !== "closed" && outage !== "open") {
    throw new TypeError(`outage must be "share", "closed" or "open"; got ${String(outage)}.`);
  }
  if (batch !== undefined && typeof batch !== "boolean") {
    throw new TypeError(`batch must be true or false; got ${String(batch)}.`);
  }
}

const NAME_MOST = 200;
const NAME_LENGTH = 10;

/** A name that no other process has. */
function processName(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(NAME_LENGTH));
  return Array.from(bytes, (byte) => (byte % 36).toString(36)).join("");
}
