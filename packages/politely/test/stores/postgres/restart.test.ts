import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.js";
import type { Cells } from "../../../src/stores/cells.js";
import { postgresCells } from "../../../src/stores/postgres.js";
import { until } from "../../fleet/until.js";
import { type PostgresServer, startPostgres } from "../../servers/postgres.js";
import { add, openPlace, read } from "./place.js";

let server: PostgresServer;
beforeAll(async () => {
  // Of its own, since it is killed.
  server = await startPostgres({ settings: {} });
}, 60_000);
afterAll(() => server.stop());

/** Adds and adds, and says how often it was told so, how often it was told of an error, and what else went wrong. */
class Adder {
  added = 0;
  failed = 0;
  readonly odd: unknown[] = [];
  #isOver = false;
  readonly #working: Promise<unknown>;

  constructor(cells: Cells, keys: readonly string[]) {
    this.#working = Promise.all(keys.map((key) => this.#work(cells, key)));
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#working;
  }

  async #work(cells: Cells, key: string): Promise<void> {
    while (!this.#isOver) {
      try {
        await add(cells, key);
        this.added += 1;
      } catch (error) {
        this.failed += 1;
        if (!(error instanceof StoreError)) this.odd.push(error);
      }
    }
  }
}

describe("a PostgreSQL that goes away and comes back", () => {
  const keys = ["a", "b", "c"];

  it.each(["restarted", "killed"])(
    "loses nothing it confirmed when it is %s, and fails with StoreError",
    async (end) => {
      await using place = await openPlace(server);
      const client = postgres(server.url, { max: 3, backoff: false });
      const adders = [place.cells(), postgresCells(client, { table: place.table })].map(
        (cells) => new Adder(cells, keys),
      );
      const goOn = (): Promise<void> => {
        const before = adders.map(({ added }) => added);
        return until("all have added again", 20_000, () =>
          adders.every(({ added }, index) => added > before[index] + 20),
        );
      };
      await goOn();
      if (end === "killed") await server.kill9();
      await server.restart();
      await until("all have met an error", 20_000, () => adders.every(({ failed }) => failed > 0));
      await goOn();
      await Promise.all(adders.map((adder) => adder.end()));

      expect(adders.flatMap(({ odd }) => odd)).toEqual([]);
      const values = await read(place.cells(), ...keys);
      const sum = values.reduce((total, value) => total + Number(value), 0);
      const added = adders.reduce((total, adder) => total + adder.added, 0);
      const failed = adders.reduce((total, adder) => total + adder.failed, 0);
      // An answer that got lost may belong to a change that was made.
      expect(sum).toBeGreaterThanOrEqual(added);
      expect(sum).toBeLessThanOrEqual(added + failed);
      await client.end({ timeout: 1 });
    },
  );
});
