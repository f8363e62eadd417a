import { beforeAll, describe, expect, it, vi } from "vitest";
import { dynamodbCells } from "../../../src/stores/dynamodb.js";
import { compileLibrary } from "../../fleet/compileLibrary.js";
import { startFleet } from "../../fleet/startFleet.js";
import { until } from "../../fleet/until.js";
import { type DynamodbServer, dynamodbClient } from "../../servers/dynamodb.js";
import { answerProxy } from "./answerProxy.js";
import { increment, newName, timeOf } from "./place.js";

/** DynamoDB Local runs on this machine, so its time is ours. */
const wallUs = (): number => Date.now() * 1_000;

/** What time it is in DynamoDB, and how well it is known. */
export function describeClock(server: () => DynamodbServer): void {
  const table = newName("clock");
  beforeAll(() => dynamodbCells(dynamodbClient(server().endpoint), { table }).createTable());

  describe("the clock of a DynamoDB store", () => {
    it("is never ahead of the server's, and behind by no more than it may be, from the first change on", async () => {
      for (const clockErrorMs of [1_200, 200, 100]) {
        const cells = dynamodbCells(dynamodbClient(server().endpoint), { table, clockErrorMs });
        for (let round = 0; round < 5; round++) {
          const beforeUs = wallUs();
          const nowUs = await timeOf(cells);
          expect(nowUs).toBeLessThanOrEqual(wallUs() + 1_000);
          // A busy machine may make the way longer than what was asked for, which is then more than it says.
          expect(nowUs).toBeGreaterThanOrEqual(beforeUs - Math.max(clockErrorMs, 1_000) * 1_000 - 1_000);
        }
      }
    });

    it("is asked for once by a store that may be a second behind", async () => {
      await using proxy = await answerProxy(server().endpoint);
      const cells = dynamodbCells(dynamodbClient(proxy.endpoint), { table, clockErrorMs: 1_100 });
      await increment(cells, newName("k"));
      expect(proxy.operations).toEqual(["GetItem", "PutItem"]);
    });

    it("is one for all stores of a client", async () => {
      await using proxy = await answerProxy(server().endpoint);
      const client = dynamodbClient(proxy.endpoint);
      await timeOf(dynamodbCells(client, { table }));
      proxy.operations.length = 0;
      await increment(dynamodbCells(client, { table }), newName("k"));
      expect(proxy.operations).toEqual(["PutItem"]);
    });

    it("is known to a tenth of a second after asking for about a second", async () => {
      await using proxy = await answerProxy(server().endpoint);
      const cells = dynamodbCells(dynamodbClient(proxy.endpoint), { table });
      await timeOf(cells);
      expect(proxy.operations.length).toBeGreaterThan(2);
      expect(proxy.operations.length).toBeLessThan(300);
      expect(new Set(proxy.operations)).toEqual(new Set(["GetItem"]));
    });

    it("does not follow a single answer that says another time", async () => {
      await using proxy = await answerProxy(server().endpoint);
      const cells = dynamodbCells(dynamodbClient(proxy.endpoint), { table });
      const key = newName("k");
      await increment(cells, key);
      for (const wrongMs of [3_600_000, -3_600_000]) {
        let isLeft = true;
        proxy.date = (date) => {
          const offMs = isLeft ? wrongMs : 0;
          isLeft = false;
          return new Date(Date.parse(date) + offMs).toUTCString();
        };
        await increment(cells, key);
        const nowUs = await timeOf(cells);
        expect(nowUs).toBeLessThanOrEqual(wallUs() + 1_000);
        expect(nowUs).toBeGreaterThanOrEqual(wallUs() - 5_000_000);
      }
      expect(await increment(cells, key)).toBe(4);
    });

    it("follows a server whose clock was set forward, once it has heard so", async () => {
      await using proxy = await answerProxy(server().endpoint);
      const cells = dynamodbCells(dynamodbClient(proxy.endpoint), { table });
      await timeOf(cells);
      proxy.date = (date) => new Date(Date.parse(date) + 600_000).toUTCString();
      await timeOf(cells);
      const nowUs = await timeOf(cells);
      expect(nowUs).toBeGreaterThan(wallUs() + 590_000_000);
      expect(nowUs).toBeLessThanOrEqual(wallUs() + 600_001_000);
    });

    it("follows a server whose clock was set back, so that those who began before and after agree", async () => {
      await using proxy = await answerProxy(server().endpoint);
      const [cells, late] = [1, 2].map(() => dynamodbCells(dynamodbClient(proxy.endpoint), { table }));
      await timeOf(cells);
      proxy.date = (date) => new Date(Date.parse(date) - 600_000).toUTCString();
      await timeOf(cells);
      for (const each of [cells, late]) {
        const nowUs = await timeOf(each);
        expect(nowUs).toBeLessThanOrEqual(wallUs() - 599_999_000);
        expect(nowUs).toBeGreaterThan(wallUs() - 605_000_000);
      }
    });

    it("is worked out anew when wall clock and monotonic clock do not agree about how much time has passed", async () => {
      await using proxy = await answerProxy(server().endpoint);
      const cells = dynamodbCells(dynamodbClient(proxy.endpoint), { table });
      const key = newName("k");
      await increment(cells, key);
      proxy.operations.length = 0;
      const rightMs = Date.now.bind(Date);
      // As after a sleep of five seconds in which the monotonic clock stood still.
      const wall = vi.spyOn(Date, "now").mockImplementation(() => rightMs() + 5_000);
      try {
        await increment(cells, key);
        expect(proxy.operations.slice(0, 2)).toEqual(["GetItem", "GetItem"]);
        expect(proxy.operations.at(-1)).toBe("PutItem");
        proxy.operations.length = 0;
        await increment(cells, key);
        expect(proxy.operations).toEqual(["PutItem"]);
        expect(await timeOf(cells)).toBeLessThanOrEqual(rightMs() * 1_000 + 1_000);
      } finally {
        wall.mockRestore();
      }
    });

    it("cannot be told without a Date", async () => {
      await using proxy = await answerProxy(server().endpoint);
      proxy.date = () => undefined;
      const cells = dynamodbCells(dynamodbClient(proxy.endpoint), { table });
      await expect(timeOf(cells)).rejects.toThrow(/carry no Date.*let it through/);
    });

    it("is the same for processes whose own clocks are a minute early or late", async () => {
      using library = await compileLibrary();
      const program = new URL("clockMember.mjs", import.meta.url);
      const members = [{ id: "right" }, { id: "early", clockOffsetSec: 60 }, { id: "late", clockOffsetSec: -60 }];
      const input = { endpoint: server().endpoint, table };
      await using fleet = await startFleet({ library, program, members, input });
      fleet.go();
      const told = () => fleet.log().filter(({ type }) => type === "time");
      await until("all have told the time", 30_000, () => told().length === 3 * 20);
      await fleet.finish(10_000);

      const wall = told().map(({ wallLeadMs }) => Number(wallLeadMs));
      expect(Math.max(...wall) - Math.min(...wall)).toBeGreaterThan(110_000);
      // All processes of the machine have the same monotonic clock, so that this is how far each believes the server to be ahead of it.
      const leads = told().map(({ nowUs, atUs }) => Number(nowUs) - Number(atUs));
      expect(Math.max(...leads) - Math.min(...leads)).toBeLessThan(200_000);
    });
  });
}
