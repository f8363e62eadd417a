import { DynamoDB, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.js";
import { type DynamodbCells, type DynamodbClient, dynamodbCells, dynamodbStore } from "../../../src/stores/dynamodb.js";
import { type DynamodbServer, dynamodbClient } from "../../servers/dynamodb.js";
import { answerProxy } from "./answerProxy.js";
import { increment, newName, put, read } from "./place.js";

/** The `StoreError` that a promise rejects with. */
async function failure(promise: Promise<unknown>): Promise<StoreError> {
  const error: unknown = await promise.then(
    (value) => expect.fail(`it resolved with ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

/** Cells that do not wait until they know the time better than to a second. */
function cellsOf(client: DynamodbClient, table: string): DynamodbCells {
  return dynamodbCells(client, { table, clockErrorMs: 2_000 });
}

/** What goes wrong with DynamoDB, and what is said then. */
export function describeErrors(server: () => DynamodbServer): void {
  describe("a DynamoDB store that cannot do what is asked for", () => {
    it("says how to create a table that is missing, and works once that is done", async () => {
      const table = newName("missing");
      const cells = cellsOf(dynamodbClient(server().endpoint), table);
      const error = await failure(increment(cells, "k"));
      expect(error.message).toContain(`There is no table "${table}"`);
      expect(error.message).toContain("createTable()");
      expect(error.cause).toMatchObject({ name: "ResourceNotFoundException" });

      await cells.createTable();
      expect(await increment(cells, "k")).toBe(1);
    });

    it("mentions the region when the table is in another one", async () => {
      const table = newName("region");
      await dynamodbCells(dynamodbClient(server().endpoint), { table }).createTable();
      const elsewhere = dynamodbCells(dynamodbClient(server().endpoint, { region: "us-east-1" }), { table });
      expect((await failure(increment(elsewhere, "k"))).message).toMatch(/region, account and endpoint/);
    });

    it("says so when the credentials are wrong or there are none", async () => {
      const table = newName("credentials");
      const wrong = dynamodbClient(server().endpoint, { credentials: { accessKeyId: "a b", secretAccessKey: "c" } });
      const refused = await failure(increment(dynamodbCells(wrong, { table }), "k"));
      expect(refused.message).toMatch(/credentials \(UnrecognizedClientException.*Check them/);

      const none = dynamodbClient(server().endpoint, { credentials: () => Promise.reject(new Error("none here")) });
      const absent = await failure(increment(dynamodbCells(none, { table }), "k"));
      expect(absent.message).toContain("none here");
      expect(absent.cause).toMatchObject({ message: "none here" });
    });

    it("names the permissions when it may read but not write, and has written nothing", async () => {
      await using proxy = await answerProxy(server().endpoint);
      const table = newName("readonly");
      const cells = cellsOf(dynamodbClient(proxy.endpoint), table);
      await cells.createTable();
      await increment(cells, "k");
      proxy.answer = (operation) => (operation === "PutItem" ? { error: "AccessDeniedException" } : undefined);
      expect((await failure(increment(cells, "k"))).message).toMatch(
        /dynamodb:GetItem, PutItem and ConditionCheckItem/,
      );
      expect(await read(cells, "k")).toEqual(["1"]);
    });

    it("leaves items alone that it did not write, among others too", async () => {
      const table = newName("foreign");
      const client = dynamodbClient(server().endpoint);
      const cells = cellsOf(client, table);
      await cells.createTable();
      const foreign = { key: { S: "k" }, points: { N: "3" }, value: { S: "mine" } };
      await client.putItem({ TableName: table, Item: foreign });
      for (const act of [
        increment(cells, "k"),
        read(cells, "k"),
        put(cells, { k: "1", other: "2" }),
        read(cells, "other", "k"),
      ]) {
        expect((await failure(act)).message).toMatch(/item "k" of table .* was not written by Politely/);
      }
      expect((await client.scan({ TableName: table })).Items).toEqual([foreign]);
    });

    it("says what the table's key has to be when it is another one", async () => {
      const table = newName("schema");
      const client = dynamodbClient(server().endpoint);
      await client.createTable({
        TableName: table,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
        KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
      });
      const error = await failure(increment(dynamodbCells(client, { table }), "k"));
      expect(error.message).toMatch(/has to be a string named "key".*createTable\(\)/);
    });

    it("says so when a value does not fit into an item", async () => {
      const table = newName("large");
      const cells = cellsOf(dynamodbClient(server().endpoint), table);
      await cells.createTable();
      const error = await failure(put(cells, { k: "x".repeat(500_000) }));
      expect(error.message).toMatch(/larger than 400 KB/);
      expect(await read(cells, "k")).toEqual([undefined]);
    });

    it("says that nothing answers where the client looks", async () => {
      const cells = dynamodbCells(dynamodbClient("http://127.0.0.1:9", { maxAttempts: 1 }), { table: "politely" });
      expect((await failure(increment(cells, "k"))).message).toMatch(/ECONNREFUSED.*region and endpoint, the network/);
      expect((await failure(cells.createTable())).message).toMatch(/ECONNREFUSED/);
    });

    it("works on with a client that was destroyed, since that only closes connections", async () => {
      const client = dynamodbClient(server().endpoint);
      const cells = cellsOf(client, newName("destroyed"));
      await cells.createTable();
      await increment(cells, "k");
      client.destroy();
      expect(await increment(cells, "k")).toBe(2);
    });
  });

  describe("arguments of a DynamoDB store", () => {
    it("include the client with all methods, not the bare one", () => {
      const bare = new DynamoDBClient({ region: "eu-central-1" }) as unknown as DynamodbClient;
      expect(() => dynamodbStore(bare, { table: "t" })).toThrow(/bare DynamoDBClient.*new DynamoDB\(/);
    });

    it("are refused when they are no client at all, or one of version 2", () => {
      for (const client of [undefined, null, "http://127.0.0.1", {}]) {
        expect(() => dynamodbStore(client as DynamodbClient, { table: "t" })).toThrow(/new DynamoDB\(/);
      }
      const { middlewareStack: _, ...older } = Object.fromEntries(
        ["getItem", "putItem", "transactGetItems", "transactWriteItems"].map((name) => [name, () => {}]),
      );
      expect(() => dynamodbStore(older as unknown as DynamodbClient, { table: "t" })).toThrow(
        /version 3 of the AWS SDK/,
      );
    });

    it("are refused when a table has no name, or a number is none", () => {
      const client = new DynamoDB({ region: "eu-central-1" });
      expect(() => dynamodbStore(client, { table: "" })).toThrow(TypeError);
      expect(() => dynamodbStore(client, { table: "t", timeoutMs: 0 })).toThrow(
        /timeoutMs must be .* at least 1; got 0/,
      );
      expect(() => dynamodbStore(client, { table: "t", clockErrorMs: Number.NaN })).toThrow(RangeError);
      expect(() => dynamodbStore(client, { table: "t", remember: -1 })).toThrow(RangeError);
    });
  });

  describe("createTable", () => {
    it("may be called again, and by several at once", async () => {
      const table = newName("twice");
      const stores = [1, 2, 3].map(() => dynamodbStore(dynamodbClient(server().endpoint), { table }));
      await Promise.all(stores.map((store) => store.createTable()));
      await stores[0].createTable();
    });

    it("has DynamoDB remove what has expired", async () => {
      const table = newName("ttl");
      const client = dynamodbClient(server().endpoint);
      await dynamodbStore(client, { table }).createTable();
      const { TimeToLiveDescription } = await client.describeTimeToLive({ TableName: table });
      expect(TimeToLiveDescription).toEqual({ TimeToLiveStatus: "ENABLED", AttributeName: "ttl" });
    });

    it("waits until the table can be used", async () => {
      await using proxy = await answerProxy(server().endpoint);
      let looks = 0;
      proxy.answer = (operation) => {
        if (operation !== "DescribeTable") return undefined;
        looks += 1;
        return looks < 3 ? { error: "ResourceNotFoundException" } : undefined;
      };
      await dynamodbStore(dynamodbClient(proxy.endpoint), { table: newName("slow") }).createTable();
      expect(proxy.operations).toEqual([
        "CreateTable",
        "DescribeTable",
        "DescribeTable",
        "DescribeTable",
        "UpdateTimeToLive",
      ]);
    });
  });
}
