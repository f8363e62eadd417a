import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PgClient } from "../../../src/stores/postgres/client.js";
import { postgresStore } from "../../../src/stores/postgres.js";
import { Asker, keyOf } from "../../../src/testing/store/world.js";
import { until } from "../../fleet/until.js";
import { type PostgresServer, startPostgres } from "../../servers/postgres.js";
import { openPlace, type Place, watched } from "./place.js";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
}, 60_000);
afterAll(() => server.stop());

function asker(place: Place, process: string, client: PgClient = place.pool()): Asker {
  return new Asker(postgresStore(client, { table: place.table }), process);
}

const wanted = { "x.org": keyOf({ concurrency: 1_000 }) };

describe("a start whose write comes too late", () => {
  it("is granted by whoever comes next, once, and its process fetches the reply without writing", async () => {
    await using place = await openPlace(server);
    let [swaps, isGated] = [0, false];
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const slow = watched(place.pool(), async ({ text }) => {
      if (!text.includes("UPDATE ")) return;
      swaps += 1;
      if (isGated && swaps > 1) await gate;
    });
    const [a, b] = [asker(place, "a", slow), asker(place, "b")];
    // Both have been too late before, and know that they are not alone.
    for (const one of [a, b, a, b, a, b]) await one.take(wanted);
    [swaps, isGated] = [0, true];
    const taking = a.take(wanted);
    const left = async (): Promise<number> => {
      const { rows } = await place.admin.query<{ n: number }>(`SELECT cardinality(asked) AS n FROM "${place.table}"`);
      return rows[0].n;
    };
    for (let looks = 0; (await left()) === 0; looks++) expect(looks).toBeLessThan(1_000);
    await until("it is about to write again", 2_000, () => swaps === 2);

    const c = asker(place, "c");
    const [first] = (await c.take(wanted)).starts;
    expect([first.token !== undefined, await left(), (await c.look(wanted)).inFlight]).toEqual([true, 0, 8]);
    open();
    const { starts } = await taking;
    expect([starts.length, swaps, (await c.look(wanted)).inFlight]).toEqual([1, 2, 8]);
    // Carried out before the one that found it.
    expect(starts[0].startedUs).toBeLessThanOrEqual(first.startedUs);
  });

  it("counts once, however many processes are too late at once", async () => {
    await using place = await openPlace(server);
    const askers = Array.from({ length: 8 }, (_, index) => asker(place, `p${index}`));
    const each = 25;
    const tokens: number[] = [];
    const take = async (one: Asker): Promise<void> => {
      for (let count = 0; count < each; count++) {
        const { starts } = await one.take(wanted);
        tokens.push(...starts.map(({ token }) => token));
      }
    };
    await Promise.all(askers.map(take));
    const { starts } = await askers[0].look(wanted);
    expect([tokens.length, new Set(tokens).size, starts]).toEqual([8 * each, 8 * each, 8 * each]);
  });
});
