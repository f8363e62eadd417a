import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.js";
import { type DynamodbCells, type DynamodbOptions, dynamodbCells } from "../../../src/stores/dynamodb.js";
import { type DynamodbServer, dynamodbClient } from "../../servers/dynamodb.js";
import { type FaultyProxy, faultyProxy } from "../../servers/faultyProxy.js";
import { type AnswerProxy, answerProxy } from "./answerProxy.js";
import { increment, itemIn, newName, put, read } from "./place.js";

/** What is sent to DynamoDB, and what becomes of it. */
export function describeRequests(server: () => DynamodbServer): void {
  const table = newName("requests");
  beforeAll(() => dynamodbCells(dynamodbClient(server().endpoint), { table }).createTable());

  /** Cells of a client of its own, whose clock does not take requests. */
  async function cellsAt(endpoint: string, options: Partial<DynamodbOptions> = {}): Promise<DynamodbCells> {
    const client = dynamodbClient(endpoint, { maxAttempts: 1 });
    const cells = dynamodbCells(client, { table, clockErrorMs: 2_000, ...options });
    await read(cells, "first");
    return cells;
  }

  describe("a change in DynamoDB", () => {
    let proxy: AnswerProxy;
    let cells: DynamodbCells;
    beforeEach(async () => {
      proxy = await answerProxy(server().endpoint);
      cells = await cellsAt(proxy.endpoint);
      proxy.operations.length = 0;
    });
    afterEach(() => proxy[Symbol.asyncDispose]());

    it("is one request when nobody disturbs it, for one key and for several, the first time too", async () => {
      const [a, b] = [newName("a"), newName("b")];
      await increment(cells, a);
      await increment(cells, a);
      expect(proxy.operations).toEqual(["PutItem", "PutItem"]);
      await put(cells, { [a]: "1", [b]: "2" });
      await put(cells, { [a]: "3", [b]: "4" });
      expect(proxy.operations.slice(2)).toEqual(["TransactWriteItems", "TransactWriteItems"]);
      expect(await read(cells, a, b)).toEqual(["3", "4"]);
      expect(proxy.operations.slice(4)).toEqual(["TransactGetItems"]);
      expect(await read(cells, a)).toEqual(["3"]);
      expect(proxy.operations.slice(5)).toEqual(["GetItem"]);
    });

    it("is two requests when somebody else has changed the key in the meantime", async () => {
      const other = await cellsAt(server().endpoint);
      const [a, b] = [newName("a"), newName("b")];
      await increment(other, a);
      expect(await increment(cells, a)).toBe(2);
      await increment(other, a);
      expect(await increment(cells, a)).toBe(4);
      expect(proxy.operations).toEqual(Array(4).fill("PutItem"));

      await put(cells, { [a]: "x", [b]: "x" });
      await put(other, { [b]: "y" });
      const seen = await cells.change([a, b], (values) => ({
        writes: [{ index: 0, value: "z", ttlUs: 600_000_000 }],
        answer: [...values],
      }));
      expect(seen).toEqual(["x", "y"]);
      expect(proxy.operations.slice(4)).toEqual(Array(3).fill("TransactWriteItems"));
    });

    it("is read before it counts that it throws or writes nothing", async () => {
      const other = await cellsAt(server().endpoint);
      const key = newName("k");
      await put(cells, { [key]: "old" });
      await put(other, { [key]: "new" });
      const seen: unknown[] = [];
      const refusing = cells.change([key], ([value]) => {
        seen.push(value);
        throw new RangeError(`no ${value}`);
      });
      await expect(refusing).rejects.toThrow("no new");
      expect(seen).toEqual(["old", "new"]);
      expect(proxy.operations).toEqual(["PutItem", "GetItem"]);
    });

    it("does not take a key that was removed and came back for the one it knew", async () => {
      const client = dynamodbClient(server().endpoint);
      const other = await cellsAt(server().endpoint);
      const key = newName("k");
      await increment(cells, key);
      await client.deleteItem({ TableName: table, Key: { key: { S: key } } });
      for (let number = 1; number <= 9; number++) await increment(other, key);
      expect(await increment(cells, key)).toBe(10);

      await client.deleteItem({ TableName: table, Key: { key: { S: key } } });
      expect(await increment(cells, key)).toBe(1);
    });

    it("waits while the table throttles or a transaction is in the way, and happens once", async () => {
      const key = newName("k");
      const canceled = {
        error: "TransactionCanceledException",
        more: { CancellationReasons: [{ Code: "None" }, { Code: "TransactionConflict" }] },
      };
      const answers = [
        { error: "ThrottlingException" },
        { error: "ProvisionedThroughputExceededException" },
        { error: "TransactionConflictException" },
        { error: "TransactionInProgressException" },
      ];
      proxy.answer = () => answers.shift();
      expect(await increment(cells, key)).toBe(1);
      expect(proxy.operations).toEqual(Array(5).fill("PutItem"));

      answers.push(canceled, canceled);
      await put(cells, { [key]: "x", [newName("b")]: "y" });
      expect(proxy.operations.slice(5)).toEqual(Array(3).fill("TransactWriteItems"));
      answers.push(canceled);
      expect(await read(cells, key, newName("c"))).toEqual(["x", undefined]);
      expect(proxy.operations.slice(8)).toEqual(Array(2).fill("TransactGetItems"));
    });

    it("gives up in time when that does not end, and says why", async () => {
      const impatient = await cellsAt(proxy.endpoint, { timeoutMs: 300 });
      proxy.answer = () => ({ error: "ThrottlingException" });
      const throttled = increment(impatient, newName("k"));
      await expect(throttled).rejects.toThrow(/no capacity left: \d+ tries within 300 ms were throttled/);
      proxy.answer = () => ({ error: "TransactionConflictException" });
      const crowded = increment(impatient, newName("k"));
      await expect(crowded).rejects.toThrow(/changed by others at every one of \d+ tries within 300 ms/);
      await expect(crowded).rejects.toBeInstanceOf(StoreError);
    });

    it("looks again when it remembers nothing, and is right all the same", async () => {
      const forgetful = await cellsAt(proxy.endpoint, { remember: 0 });
      proxy.operations.length = 0;
      const key = newName("k");
      for (let number = 1; number <= 3; number++) expect(await increment(forgetful, key)).toBe(number);
      // The first finds nothing; those after it learn what is there from a write that fails.
      expect(proxy.operations).toEqual(Array(5).fill("PutItem"));
    });

    it("leaves an item with an expiry, by which DynamoDB removes it later", async () => {
      const key = newName("k");
      const nowUs = await cells.change([key, "first"], (_, atUs) => ({
        writes: [{ index: 0, value: "v", ttlUs: 90_000_000 }],
        answer: atUs,
      }));
      const item = await itemIn(dynamodbClient(server().endpoint), table, key);
      expect(item?.expiresUs.N).toBe(String(nowUs + 90_000_000));
      const removedSec = Number(item?.ttl.N);
      expect(removedSec).toBeGreaterThan((nowUs + 90_000_000) / 1_000_000);
      expect(removedSec).toBeLessThan((nowUs + 90_000_000) / 1_000_000 + 120);

      await cells.change([key], () => ({ writes: [{ index: 0, value: "v", ttlUs: Infinity }], answer: 0 }));
      expect(Number((await itemIn(dynamodbClient(server().endpoint), table, key))?.ttl.N)).toBeGreaterThan(removedSec);
    });

    it("tells keys apart that differ in half a character", async () => {
      const stem = newName("half");
      const keys = [`${stem}\ud800`, `${stem}\udbff`, `${stem}\ufffd`];
      await put(cells, { [keys[0]]: "1", [keys[1]]: "2", [keys[2]]: "3" });
      const another = await cellsAt(server().endpoint);
      expect(await read(another, ...keys)).toEqual(["1", "2", "3"]);
    });

    it("keeps apart keys that DynamoDB could not have, and keys that look like them", async () => {
      const client = dynamodbClient(server().endpoint);
      await put(cells, { "": "empty" });
      const named = (await client.scan({ TableName: table })).Items?.find(({ value }) => value?.S === "empty");
      const lookalike = named?.key.S ?? expect.fail("there is no such item");
      await put(cells, { [lookalike]: "another" });
      expect(await read(cells, "", lookalike)).toEqual(["empty", "another"]);
    });
  });

  describe("a change in DynamoDB over a bad network", () => {
    let proxy: FaultyProxy;
    let endpoint: string;
    beforeEach(async () => {
      const { hostname, port } = new URL(server().endpoint);
      proxy = await faultyProxy({ host: hostname, port: Number(port) });
      endpoint = `http://${proxy.host}:${proxy.port}`;
    });
    afterEach(() => proxy.stop());

    it("counts once though its reply is lost and the client sends it again", async () => {
      const client = dynamodbClient(endpoint, { maxAttempts: 3 });
      const cells = dynamodbCells(client, { table, clockErrorMs: 2_000 });
      const [a, b] = [newName("a"), newName("b")];
      expect(await increment(cells, a)).toBe(1);
      proxy.swallowReplies(1);
      expect(await increment(cells, a)).toBe(2);
      proxy.swallowReplies(1);
      const sums = await cells.change([a, b], ([x, y]) => ({
        writes: [{ index: 1, value: String(Number(x) + Number(y ?? 0)), ttlUs: 600_000_000 }],
        answer: Number(x) + Number(y ?? 0),
      }));
      expect(sums).toBe(2);
      expect(proxy.lostBytes).toBeGreaterThan(0);
      expect(await read(cells, a, b)).toEqual(["2", "2"]);
    });

    it("does not hang when nothing comes back, also for those that wait behind it", async () => {
      const cells = await cellsAt(endpoint, { timeoutMs: 500 });
      const key = newName("k");
      await increment(cells, key);
      proxy.halfOpen();
      const startedMs = performance.now();
      const ends = await Promise.allSettled([increment(cells, key), increment(cells, key), increment(cells, "other")]);
      expect(performance.now() - startedMs).toBeLessThan(5_000);
      for (const end of ends) {
        expect(end).toMatchObject({ status: "rejected", reason: { code: "POLITELY_STORE" } });
        expect(String(Reflect.get(end, "reason"))).toMatch(/did not answer within 500 ms/);
      }
      await proxy.heal();
      // The first may have arrived after all; nothing is counted twice, and nothing is stuck.
      expect(await increment(cells, key)).toBeLessThanOrEqual(3);
    });

    it("fails at once when it cannot connect, and works when it can again", async () => {
      const cells = await cellsAt(endpoint);
      const key = newName("k");
      await increment(cells, key);
      await proxy.cut();
      await expect(increment(cells, key)).rejects.toThrow(/ECONNREFUSED|ECONNRESET|socket hang up/);
      await proxy.heal();
      expect(await increment(cells, key)).toBe(2);
    });
  });
}
