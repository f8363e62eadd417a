import { StoreError } from "../../errors.js";
import type { DynamodbClient, DynamodbCondition, DynamodbItem, DynamodbPlace, DynamodbPut } from "../dynamodb.js";
import { lastingError } from "../failures.js";
import type { Part, PlaceTime, Seen, SeenCell, SwapPlace, Swapped, Turn } from "../swapCells.js";
import { type AnswerClock, pause } from "./answerClock.js";
import { dynamodbError, Refusal, refusalOf, timeoutOf } from "./failures.js";

/** The attribute that the table's key is. */
const KEY = "key";
/** The attribute that a compare and swap compares. */
const VERSION = "version";
/** The attribute by which DynamoDB removes what has expired: a second since 1970. */
const TTL = "ttl";
/** The sweep waits this much longer, so that nothing is removed before the clients see it as expired. */
const SWEPT_LATER_SEC = 60;
/** The longest pause after a lost race, and the first and the longest for capacity that is used up, which comes back more slowly. Each is a random part of that. */
const LOST_PAUSE_MS = 100;
const THROTTLED_PAUSES_MS = [50, 1_000] as const;
/** Read for its `Date` alone. There is no such item. */
const CLOCK_PROBE = "politely:clock";
/** A table takes some seconds; a minute says that something is wrong. */
const READY_MS = 60_000;
const PAUSE_MOST_MS = 2_000;

/** The items of one table. The answer to a write that fails says what is there, so that a change is one request, even the first of a key that is not there yet. */
export class TablePlace implements SwapPlace {
  readonly together = 1;
  readonly lanes = Number.POSITIVE_INFINITY;
  readonly isGuessing = true;
  readonly #writer = Array.from(crypto.getRandomValues(new Uint32Array(3)), (word) => word.toString(36)).join("");
  #writes = 0;

  constructor(
    private readonly client: DynamodbClient,
    private readonly table: string,
    private readonly clockErrorUs: number,
    readonly timeoutMs: number,
    readonly remembered: number,
    private readonly clock: AnswerClock,
  ) {}

  /** Sees to it that the time is known well enough to decide by it. */
  async time(turn: Turn): Promise<PlaceTime> {
    const { client, clock, clockErrorUs, timeoutMs } = this;
    while (!clock.isSettled(clockErrorUs)) {
      // Others wait for the same reads, so that the end of this change must not end them.
      const abortSignal = AbortSignal.timeout(timeoutMs);
      const place = { ...this.#placeOf(CLOCK_PROBE), ConsistentRead: false };
      await this.#ask(turn, () => clock.settle(clockErrorUs, () => client.getItem(place, { abortSignal })));
    }
    return clock.read();
  }

  /** Looks at all cells of a change in one step. */
  async read(names: readonly string[], turn: Turn): Promise<Seen> {
    const { client, table } = this;
    const options = { abortSignal: turn.signal };
    const places = names.map((name) => this.#placeOf(name));
    for (;;) {
      const items = await this.#ask(turn, async () => {
        if (places.length === 1) return [(await client.getItem({ ...places[0], ConsistentRead: true }, options)).Item];
        const transaction = { TransactItems: places.map((Get) => ({ Get })) };
        return (await client.transactGetItems(transaction, options)).Responses?.map(({ Item }) => Item) ?? [];
      });
      if (items instanceof Refusal) continue;
      const cells = new Map<string, SeenCell>();
      names.forEach((name, index) => {
        const cell = cellOf(items[index], table);
        if (cell !== undefined) cells.set(name, cell);
      });
      return cells;
    }
  }

  async swap([part]: readonly Part[], seen: Seen, _nowUs: number, turn: Turn): Promise<Swapped> {
    const { client, table } = this;
    const version = `${this.#writer}.${(++this.#writes).toString(36)}`;
    const names = [...part.names];
    const steps = names.map((name) => {
      const condition = this.#condition(seen.get(name));
      const cell = part.writes.get(name);
      return cell === undefined
        ? { ConditionCheck: { ...condition, ...this.#placeOf(name) } }
        : { Put: { ...condition, Item: itemOf(name, { ...cell, version }) } };
    });
    const options = { abortSignal: turn.signal };
    const [only] = steps;
    const answer = await this.#ask(turn, () =>
      steps.length === 1 && only.Put !== undefined
        ? client.putItem(only.Put, options)
        : client.transactWriteItems({ TransactItems: steps, ClientRequestToken: version }, options),
    );
    const written = { versions: [version], seen, isFresh: false, hasCompany: false };
    if (!(answer instanceof Refusal)) return written;
    const now = new Map(seen);
    for (const [index, item] of answer.found) {
      const cell = cellOf(item, table);
      // A write whose reply got lost is sent again by the client, and fails the second time: then what is there is what it wrote.
      if (cell?.version === version) return written;
      if (cell === undefined) now.delete(names[index]);
      else now.set(names[index], cell);
    }
    const isFresh = names.length === 1 && answer.found.has(0);
    return { versions: [undefined], seen: now, isFresh, hasCompany: answer.why === "changed" };
  }

  failureOf(error: unknown): StoreError {
    return dynamodbError(error, this.table);
  }

  lateError(_key: string, turn: Turn | undefined): StoreError {
    return timeoutOf(this.timeoutMs, turn?.refusals ?? 0, turn?.why, this.table);
  }

  /** Sends a request. Where it was refused, says why once a pause is over. */
  async #ask<Answer>(turn: Turn, request: () => Promise<Answer>): Promise<Answer | Refusal> {
    try {
      turn.signal.throwIfAborted();
      return await request();
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal === undefined) throw error;
      turn.refusals += 1;
      turn.why = refusal.why;
      const waitMs = pauseMs(refusal, turn.refusals);
      if (waitMs > 0) await pause(waitMs);
      return refusal;
    }
  }

  #placeOf(name: string): DynamodbPlace {
    return { TableName: this.table, Key: { [KEY]: { S: name } } };
  }

  #condition(cell: SeenCell | undefined): DynamodbCondition {
    return {
      TableName: this.table,
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      ConditionExpression: cell === undefined ? "attribute_not_exists(#a)" : "#a = :v",
      ExpressionAttributeNames: { "#a": cell === undefined ? KEY : VERSION },
      ...(cell && { ExpressionAttributeValues: { ":v": { S: cell.version } } }),
    };
  }
}

function pauseMs({ why }: Refusal, count: number): number {
  // Whoever has just lost a race knows what is there now. After a pause that would be old again, and the next race as good as lost,
  // so every other try follows at once.
  if (why === "changed" && count % 2 === 1) return 0;
  const [fromMs, toMs] = THROTTLED_PAUSES_MS;
  return (
    Math.random() * (why === "throttled" ? Math.min(toMs, fromMs * 2 ** count) : Math.min(LOST_PAUSE_MS, 5 * count))
  );
}

/** The item that keeps a cell. */
function itemOf(name: string, { value, version, expiresUs }: SeenCell): DynamodbPut["Item"] {
  return {
    [KEY]: { S: name },
    value: { S: value },
    [VERSION]: { S: version },
    expiresUs: { N: String(expiresUs) },
    [TTL]: { N: String(Math.ceil(expiresUs / 1_000_000) + SWEPT_LATER_SEC) },
  };
}

/** The cell of an item; undefined when there is no item. Throws `StoreError` for one that Politely did not write. */
function cellOf(item: DynamodbItem | undefined, table: string): SeenCell | undefined {
  if (item === undefined) return undefined;
  const value = item.value?.S;
  const version = item[VERSION]?.S;
  const expiresUs = Number(item.expiresUs?.N ?? Number.NaN);
  if (value === undefined || version === undefined || Number.isNaN(expiresUs)) {
    throw lastingError(
      `The item "${item[KEY]?.S}" of table "${table}" was not written by Politely. Remove it, or give the store a table of its own.`,
    );
  }
  return { value, version, expiresUs };
}

/** Creates the table unless it is there, waits until it can be used, and has DynamoDB remove what has expired. */
export async function createTable(client: DynamodbClient, table: string): Promise<void> {
  const abortSignal = AbortSignal.timeout(READY_MS);
  const options = { abortSignal };
  const shape = {
    TableName: table,
    BillingMode: "PAY_PER_REQUEST" as const,
    AttributeDefinitions: [{ AttributeName: KEY, AttributeType: "S" as const }],
    KeySchema: [{ AttributeName: KEY, KeyType: "HASH" as const }],
  };
  const TimeToLiveSpecification = { AttributeName: TTL, Enabled: true };
  // Right after it was created, a table may not be known everywhere.
  const describe = () =>
    unless("ResourceNotFoundException", client.describeTable({ TableName: table }, options)).then(
      (known) => known?.Table?.TableStatus ?? "",
    );
  try {
    await unless("ResourceInUseException", client.createTable(shape, options));
    for (let waitMs = 50; !/^(ACTIVE|UPDATING)$/.test(await describe()); waitMs = Math.min(waitMs * 2, PAUSE_MOST_MS)) {
      abortSignal.throwIfAborted();
      await pause(waitMs);
    }
    // It is an error to turn on what is on already, or is being turned on by somebody else.
    const expiring = client.updateTimeToLive({ TableName: table, TimeToLiveSpecification }, options);
    await unless("ValidationException", expiring);
  } catch (error) {
    if (!abortSignal.aborted) throw dynamodbError(error, table);
    const late = `Table "${table}" could not be used within ${READY_MS} ms of createTable(). Look at it in the console of AWS.`;
    throw new StoreError(late, { cause: error });
  }
}

/** What a request resolves with, or undefined when it rejects with an error of that name. */
function unless<Answer>(name: string, request: Promise<Answer>): Promise<Answer | undefined> {
  return request.catch((error: unknown) => {
    if (!(error instanceof Error && error.name === name)) throw error;
    return undefined;
  });
}
