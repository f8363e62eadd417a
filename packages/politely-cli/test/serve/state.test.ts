import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { startDynamodb } from "../../../politely/test/servers/dynamodb.js";
import { startPostgres } from "../../../politely/test/servers/postgres.js";
import { startRedis } from "../../../politely/test/servers/redis.js";
import { openState } from "../../src/serve/state.js";
import { Place } from "../get/place.js";

/** Where state is shared. */
interface Ground extends AsyncDisposable {
  addressIn(place: Place): string;
}

const grounds: Readonly<Record<string, () => Promise<Ground>>> = {
  redis: async () => {
    const server = await startRedis();
    return { addressIn: () => server.url, [Symbol.asyncDispose]: () => server.stop() };
  },
  postgres: async () => {
    const server = await startPostgres();
    return { addressIn: () => server.url, [Symbol.asyncDispose]: () => server.stop() };
  },
  dynamodb: async () => {
    const server = await startDynamodb();
    const settings = new URLSearchParams({ region: "eu-central-1", endpoint: server.endpoint });
    return { addressIn: () => `dynamodb:politely-serve?${settings}`, [Symbol.asyncDispose]: () => server.stop() };
  },
  sqlite: async () => ({
    addressIn: (place) => join(place.path, "shared.db"),
    [Symbol.asyncDispose]: async () => undefined,
  }),
};

for (const [kind, start] of Object.entries(grounds)) {
  it(`lets several services share one budget in ${kind}`, async () => {
    vi.stubEnv("AWS_ACCESS_KEY_ID", "politely");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "politely");
    await using ground = await start();
    using place = new Place();
    const host = `${crypto.randomUUID()}.org`;
    const policy = { hosts: { [host]: { rate: "1/h", concurrency: 1 } } } as const;
    const given = { policy, cwd: place.path, share: ground.addressIn(place) };
    const [one, other] = [await openState(given), await openState(given)];
    try {
      expect([one.store, await one.isThere()]).toEqual([kind, true]);
      expect(await other.limiter.check(host)).toMatchObject({ proceed: true });
      const permit = await one.limiter.acquire(host);
      expect(await other.limiter.check(host)).toMatchObject({ proceed: false });
      await permit.release("unused");
      expect(await other.limiter.check(host)).toMatchObject({ proceed: true });
    } finally {
      await one.close();
      await other.close();
      vi.unstubAllEnvs();
    }
  });
}

it("knows when its store is away, and when it is back", async () => {
  await using server = await startRedis({ args: [] });
  const state = await openState({ policy: {}, cwd: "/", share: server.url });
  try {
    expect(await state.isThere()).toBe(true);
    await server.kill9();
    expect(await state.isThere()).toBe(false);
    await server.restart();
    await vi.waitFor(async () => expect(await state.isThere()).toBe(true), 20_000);
  } finally {
    await state.close();
  }
});
