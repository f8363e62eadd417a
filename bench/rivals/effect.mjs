// @ts-check
import { Effect, Layer } from "effect";
import { RateLimiter } from "effect/persistence";

/** Each host has had its one start of this hour. @param {string[]} hosts */
export async function hold(hosts) {
  const program = Effect.gen(function* () {
    const limiter = yield* RateLimiter.RateLimiter;
    for (const key of hosts) {
      yield* limiter.consume({ algorithm: "token-bucket", window: "1 hour", limit: 1, key });
    }
    return limiter;
  });
  const layer = RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory));
  return Effect.runPromise(program.pipe(Effect.provide(layer)));
}
