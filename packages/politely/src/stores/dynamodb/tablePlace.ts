import type { StoreError } from "../../errors.js";
import type { DynamodbClient, DynamodbCondition, DynamodbPlace } from "../dynamodb.js";
import type { Part, PlaceTime, Seen, SeenCell, SwapPlace, Swapped, Turn } from "../swapCells.js";
import type { AnswerClock } from "./answerClock.js";
import { failureOf, Refusal, refusalOf, timeoutOf } from "./failures.js";
import { cellOf, itemOf, KEY, VERSION } from "./item.js";
import { pause } from "./pause.js";

/** The longest pause after a lost race, and the first and the longest for capacity that is used up, which comes back more slowly. Each is a random part of that. */
const LOST_PAUSE_MS = 100;
const THROTTLED_PAUSES_MS = [50, 1_000] as const;
/** Read for its `Date` alone. There is no such item. */
const CLOCK_PROBE = "politely:clock";

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
    return failureOf(error, this.table);
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
      await pause(pauseMs(refusal, turn.refusals));
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
