import type { AnyLimiter } from "../../sharedTypes.js";
import { type Exchange, exchangeOf } from "../exchange.js";
import type { AxiosLike, ChangeAdapter } from "./client.js";
import { AxiosCourier } from "./courier.js";

export type { AxiosLike } from "./client.js";

/** Which exchanges an adapter goes through, and from which ones an instance has its interceptor. */
const exchangesOf = new WeakMap<object, readonly Exchange[]>();

/**
 * Makes the requests of an axios instance wait for `limiter` and tell it what was answered. Changes the instance itself,
 * and returns it.
 *
 * Each redirect waits its turn at its own host. `timeout` starts at the grant of each hop. A place is kept until the body
 * has arrived; that of a `responseType: "stream"` until it ends, is destroyed, or nobody has begun to read it for 5 s.
 * Cancelling leaves the queue. `http.retry` of the policy applies. `politely` in the config of a request says how it waits.
 * Errors are those of axios, and the limiter's own as they are. A request that brings its own adapter function is not paced.
 *
 * Throws `TypeError` when `limiter` is none. The same limiter twice paces once.
 */
export function politeAxios<Instance extends AxiosLike>(instance: Instance, limiter: AnyLimiter): Instance {
  const exchange = exchangeOf(limiter, "politeAxios");
  const courier = new AxiosCourier(exchange, instance);
  const wrap = (adapter: unknown): unknown => {
    const known = exchangesIn(adapter);
    if (known.includes(exchange)) return adapter;
    const polite = courier.adapter(adapter);
    exchangesOf.set(polite, [...known, exchange]);
    return polite;
  };
  instance.defaults.adapter = wrap(instance.defaults.adapter);
  const known = exchangesIn(instance);
  if (known.includes(exchange)) return instance;
  exchangesOf.set(instance, [...known, exchange]);
  // An adapter named in a request takes the place of ours; a function is the caller's own way.
  const wrapNamed: ChangeAdapter = (config) => {
    const isOurs = exchangesIn(config.adapter).length > 0;
    if (isOurs || typeof config.adapter !== "function") config.adapter = wrap(config.adapter);
    return config;
  };
  instance.interceptors.request.use(wrapNamed, null, { synchronous: true });
  return instance;
}

function exchangesIn(thing: unknown): readonly Exchange[] {
  return typeof thing === "function" ? (exchangesOf.get(thing) ?? []) : [];
}
