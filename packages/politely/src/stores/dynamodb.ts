import { checkNames } from "../core/checkNames.js";
import { cellStore } from "./cellStore.js";
import type { Cells, ChangeCells } from "./cells.js";
import { AnswerClock } from "./dynamodb/answerClock.js";
import { createTable, TablePlace } from "./dynamodb/table.js";
import type { Store } from "./store.js";
import { SwapCells } from "./swapCells.js";

/** A value of an item: a text, or a number as text. */
export interface DynamodbAttribute {
  readonly S?: string | undefined;
  readonly N?: string | undefined;
}

/** An item, or the key of one. */
export type DynamodbItem = Readonly<Record<string, DynamodbAttribute>>;

/** A condition on an item. When it is not met, the error carries the item as it is. */
export interface DynamodbCondition {
  TableName: string;
  ConditionExpression: string;
  ExpressionAttributeNames: Record<string, string>;
  ExpressionAttributeValues?: Record<string, { S: string }>;
  ReturnValuesOnConditionCheckFailure: "ALL_OLD";
}

/** A write that happens if its condition is met. */
export interface DynamodbPut extends DynamodbCondition {
  Item: Record<string, { S: string } | { N: string }>;
}

/** Where an item is. */
export interface DynamodbPlace {
  TableName: string;
  Key: Record<string, { S: string }>;
}

/** One step of a transaction. */
export type DynamodbTransactWrite =
  | { Put: DynamodbPut }
  | {
      ConditionCheck: DynamodbCondition & DynamodbPlace;
    };

/** What a request is sent with. */
export interface DynamodbRequestOptions {
  abortSignal?: AbortSignal;
}

/** What a new table is like. */
export interface DynamodbTableShape {
  TableName: string;
  BillingMode: "PAY_PER_REQUEST";
  AttributeDefinitions: { AttributeName: string; AttributeType: "S" }[];
  KeySchema: { AttributeName: string; KeyType: "HASH" }[];
}

/**
 * The part of the client that the store calls. `new DynamoDB({ … })` of `@aws-sdk/client-dynamodb` fits.
 *
 * A bare `DynamoDBClient` does not: all it has is `send`, and the commands to send would have to be imported.
 */
export interface DynamodbClient {
  /** Where its answers pass by on their way in. */
  readonly middlewareStack: { add(middleware: never, options: never): void };
  getItem(
    input: DynamodbPlace & { ConsistentRead: boolean },
    options?: DynamodbRequestOptions,
  ): Promise<{ Item?: DynamodbItem | undefined }>;
  putItem(input: DynamodbPut, options?: DynamodbRequestOptions): Promise<object>;
  transactGetItems(
    input: { TransactItems: { Get: DynamodbPlace }[] },
    options?: DynamodbRequestOptions,
  ): Promise<{ Responses?: readonly { Item?: DynamodbItem | undefined }[] | undefined }>;
  transactWriteItems(
    input: { TransactItems: DynamodbTransactWrite[]; ClientRequestToken: string },
    options?: DynamodbRequestOptions,
  ): Promise<object>;
  createTable(input: DynamodbTableShape, options?: DynamodbRequestOptions): Promise<object>;
  describeTable(
    input: { TableName: string },
    options?: DynamodbRequestOptions,
  ): Promise<{ Table?: { TableStatus?: string | undefined } | undefined }>;
  updateTimeToLive(
    input: { TableName: string; TimeToLiveSpecification: { AttributeName: string; Enabled: boolean } },
    options?: DynamodbRequestOptions,
  ): Promise<object>;
}

const DEFAULT_CLOCK_ERROR_MS = 100;

/** How state is kept in a DynamoDB table. */
export interface DynamodbOptions {
  /** The name or the ARN of the table. It is the store's own: nothing else is in it. */
  readonly table: string;
  /**
   * How long one operation may take, with all its tries, in milliseconds. Default 10,000.
   *
   * Then it rejects with `StoreError`, and may have happened or not.
   */
  readonly timeoutMs?: number;
  /**
   * How far behind the server's time the estimate may be when something is decided, in milliseconds. Default 100.
   *
   * A process that knows the time less well, since it has just begun or has been idle for minutes, first reads until it knows it better,
   * which takes up to about a second. With 1,100 or more one read is enough. Over a slow way it is more: up to 4.5 round trips and 15 ms, or
   * 1.5 round trips and 1,015 ms where that is less or 1,050 or more were asked for.
   */
  readonly clockErrorMs?: number;
  /** How many keys are remembered as they were last seen, so that a change of one takes a single request. Default 10,000. */
  readonly remember?: number;
}

/** A store in a DynamoDB table. */
export interface DynamodbStore extends Store {
  /**
   * Creates the table, billed by request, and has DynamoDB remove what has expired. Resolves once it can be used, after some seconds.
   *
   * A table that is there already stays as it is. Rejects with `StoreError`, after a minute at the latest.
   */
  createTable(): Promise<void>;
}

/** Cells in a DynamoDB table. */
export interface DynamodbCells extends Cells {
  /** As `createTable` of the store. */
  createTable(): Promise<void>;
}

/**
 * Keeps limits in a DynamoDB table, shared by everyone who has the table.
 *
 * Each decision is one conditional write; several keys are one transaction. The caller makes and closes the client. Time is DynamoDB's own, worked out from the
 * `Date` of its answers: never ahead, and over a fast way at most `clockErrorMs` behind, whatever the clock of the machine says. A lease has one holder at a
 * time however far behind that is. The client gets a middleware that reads that header.
 *
 * Throws `TypeError` or `RangeError` for a client or options that cannot be right. Asks nothing before the first operation.
 */
export function dynamodbStore(client: DynamodbClient, options: DynamodbOptions): DynamodbStore {
  const cells = dynamodbCells(client, options);
  return Object.assign(cellStore(cells), { createTable: () => cells.createTable() });
}

/** Keeps strings in a DynamoDB table, and changes several in one step by compare and swap. What `dynamodbStore` is made of. */
export function dynamodbCells(client: DynamodbClient, options: DynamodbOptions): DynamodbCells {
  checkClient(client);
  checkNames(options, ["table", "timeoutMs", "clockErrorMs", "remember"], "options of dynamodbStore");
  const { table, timeoutMs = 10_000, clockErrorMs = DEFAULT_CLOCK_ERROR_MS, remember = 10_000 } = options;
  if (typeof table !== "string" || table === "") {
    throw new TypeError(`table must be the name of a DynamoDB table; got ${JSON.stringify(table)}`);
  }
  checkNumber("timeoutMs", timeoutMs, 1);
  checkNumber("clockErrorMs", clockErrorMs, 1);
  checkNumber("remember", remember, 0);
  const clock = AnswerClock.of(client);
  const clockErrorUs = clockErrorMs * 1_000;
  const items = new SwapCells(new TablePlace(client, table, clockErrorUs, timeoutMs, remember, clock));
  return {
    name: "DynamoDB",
    timeline: "epoch",
    isContended: true,
    clockErrorUs,
    change: <Answer>(keys: readonly string[], change: ChangeCells<Answer>) =>
      items.change(keys, change) as Promise<Answer>,
    createTable: () => createTable(client, table),
  };
}

function checkClient(client: DynamodbClient): void {
  const given = (client ?? {}) as unknown as Partial<Record<string, unknown>>;
  const methods = ["getItem", "putItem", "transactGetItems", "transactWriteItems", "middlewareStack"];
  const missing = methods.find((method) => given[method] === undefined);
  if (missing === undefined) return;
  const what =
    typeof given.send === "function"
      ? `The client has send, but no ${missing}: it is a bare DynamoDBClient or a document client. Give the store a DynamoDB of the same package, which takes the same options`
      : `The client has no ${missing}. It must be a DynamoDB of version 3 of the AWS SDK, from "@aws-sdk/client-dynamodb"`;
  throw new TypeError(`${what}: new DynamoDB({ … })`);
}

function checkNumber(name: string, value: number, least: number): void {
  if (!(Number.isFinite(value) && value >= least)) {
    throw new RangeError(`${name} must be a number of at least ${least}; got ${value}`);
  }
}
