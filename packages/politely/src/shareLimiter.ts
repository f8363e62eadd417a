import { systemClock } from "./engine/systemClock.js";
import { exchangeOf, registerExchange } from "./http/exchange.js";
import { durationUs } from "./policy/duration.js";
import type { Limits } from "./policy/types.js";
import type { Engine } from "./scheduler/engine.js";
import { LocalLimiter } from "./scheduler/limiter.js";
import { Broker } from "./scheduler/shared/broker.js";
import { Link } from "./scheduler/shared/link.js";
import { Renewals } from "./scheduler/shared/renewals.js";
import { Settler } from "./scheduler/shared/settler.js";
import { StoreLimiter } from "./scheduler/shared/sharedLimiter.js";
import { Standby } from "./scheduler/shared/standby.js";
import { storeProblem } from "./scheduler/shared/storeCheck.js";
import { StoreKeyLimiter } from "./scheduler/shared/storeKeyLimiter.js";
import type { SharedKeyLimiter, SharedOptions } from "./sharedTypes.js";
import type { MakeFront } from "./sharing.js";
import { memoryStore } from "./stores/memory.js";

/** Puts a limiter together whose limits are kept in a store. */
export function shareLimiter(options: SharedOptions, makeFront: MakeFront): StoreLimiter {
  const { store, name = "", outage = "share", batch = false, ...own } = options;
  checkShared(options);
  const clock = options.clock ?? systemClock();
  const process = processName();
  let broker: Broker | undefined;
  let made: Engine | undefined;
  const engine = (): Engine => {
    if (made === undefined) throw new Error("The engine is made before anything asks for it.");
    return made;
  };
  const onOutage = (said: string, isAway: boolean): void => {
    const message = isAway ? `${said.replace(/\.$/, "")}; ${standby.says}` : said;
    engine().emit(() => ({ type: "outage", key: "*", atMs: engine().nowUs() / 1000, isAway, message }));
    if (!isAway) broker?.storeIsBack();
  };
  const onLost = (key: string, message: string): void =>
    engine().emit(() => ({ type: "warn", key, atMs: engine().nowUs() / 1000, message }));
  const link = new Link({ store, clock, process, onOutage, onLost });
  const standby: Standby = new Standby(
    memoryStore(() => engine().nowUs()),
    link,
    () => engine().nowUs(),
    outage,
  );
  const renewals = new Renewals(clock, link, (permit, heldMs) => {
    const { key } = permit;
    settler.lapse(permit);
    const message = `a permit lost its place in the store after ${Math.round(heldMs)} ms: it was held for maxHold. Release permits sooner, or raise maxHold`;
    const atMs = engine().nowUs() / 1000;
    const afterMs = atMs - permit.localStartedAtMs;
    engine().emit(() => ({ type: "expire", key, atMs, what: "permit", afterMs }));
    engine().emit(() => ({ type: "warn", key, atMs, message }));
  });
  const settler: Settler = new Settler({
    engine,
    link,
    standby,
    renewals,
    onFreed: (keys) => broker?.freed(keys),
    onHeld: (keys) => broker?.held(keys),
    track: (work) => broker?.track(work),
  });
  const front = makeFront({ ...own, clock }, (parts) => {
    const asked = { outage, isBatch: batch, process, name };
    const counsel = (behind: Engine): Broker => {
      made = behind;
      broker = new Broker({ engine: behind, link, standby, settler, options: asked });
      return broker;
    };
    return new LocalLimiter({ ...parts, onExempt: (key) => parts.onDisabled(key, "localhost"), counsel });
  });
  if (broker === undefined) throw new Error("The front makes its engine at once.");
  const readPause = (value: unknown): number => durationUs(value, "duration", { allowInfinity: true });
  const limiter = new StoreLimiter({ front, engine: engine(), broker, readPause });
  registerExchange(limiter, exchangeOf(front, "politely"));
  return limiter;
}

/** The same for one key. `change` takes limits that apply from the next `configure` on. */
export function shareKeyLimiter(
  options: SharedOptions,
  key: string,
  makeFront: MakeFront,
  change: (limits: Limits) => void,
): SharedKeyLimiter {
  if (options.name === undefined || options.name === "") {
    throw new TypeError(
      'limit with a store needs a name: all with the same name share one key. Write { store, name: "mail" }.',
    );
  }
  const shared = shareLimiter(options, makeFront);
  const keyLimiter = new StoreKeyLimiter(shared, key, (changed) => {
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
