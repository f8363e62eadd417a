import type { CellWrite } from "../cells.js";
import type { ChangeDynamodbCells, DynamodbClient, DynamodbCondition } from "../dynamodb.js";
import type { AnswerClock, KnownTime } from "./answerClock.js";
import { failureOf, type Refusal, refusalOf, timeoutOf } from "./failures.js";
import { cellOf, expiryUs, itemName, itemOf, keyName, type StoredCell, versionName } from "./item.js";
import { pause } from "./pause.js";
import { RememberedCells } from "./rememberedCells.js";
import { Turns } from "./turns.js";

/** What the cells of a table need. */
export interface TableCellsOptions {
  readonly client: DynamodbClient;
  readonly table: string;
  readonly timeoutMs: number;
  readonly clockErrorUs: number;
  readonly remember: number;
  readonly clock: AnswerClock;
}

/** One change that is under way. */
interface Job {
  readonly names: readonly string[];
  /** The cells as they were last seen; undefined where there was none, or nothing is known. */
  readonly cells: (StoredCell | undefined)[];
  /** The cells were all seen in one step since the change was asked for. */
  isCurrent: boolean;
  refusals: number;
  lastRefusal: Refusal | undefined;
  readonly abortSignal: AbortSignal;
}

/** The longest pause after a lost race. They grow by the time of a write with each race; each is a random part of that. */
const lostPauseMs = 100;
/** A process that has just written gives way to others for a random part of so many round trips, */
const givenWayTrips = 2;
/** always when others have written something that it saw within this time, and else now and then. */
const companyMs = 10_000;
const aloneShare = 1 / 8;
/** So many names are remembered as just written. */
const writtenMost = 1_000;
/** Capacity that is used up comes back more slowly. */
const throttledPausesMs = [50, 1_000] as const;
/** Read for its `Date` alone. There is no such item. */
const clockProbe = "politely:clock";

/**
 * The cells of one table.
 *
 * A change works on what was last seen, and is written on the condition that it is still so; the answer to a write that fails says what
 * is there now. So a change that nobody disturbs is one request, even the first of a key that is not there yet.
 */
export class TableCells {
  readonly #remembered: RememberedCells;
  readonly #turns = new Turns();
  readonly #writer = Array.from(crypto.getRandomValues(new Uint32Array(3)), (word) => word.toString(36)).join("");
  #writes = 0;
  /** When this process last wrote an item, in milliseconds of its monotonic clock. */
  readonly #writtenMs = new Map<string, number>();
  /** How long a write usually takes. */
  #tripMs = 0;
  /** When something written by another process was last seen. */
  #companyAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: TableCellsOptions) {
    this.#remembered = new RememberedCells(options.remember);
  }

  /** As `change` of `Cells`. */
  async change<Answer>(keys: readonly string[], change: ChangeDynamodbCells<Answer>): Promise<Answer> {
    const names: string[] = [];
    for (const key of keys) {
      const name = itemName(key);
      names.push(typeof name === "string" ? name : await name);
    }
    // Waiting for the turn counts too. Those in front are over by then, since they came before.
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.options.timeoutMs);
    try {
      return await this.#turns.take(names, async () => {
        await this.#giveWay(names);
        const cells = names.map((name) => this.#remembered.get(name));
        const job = { names, cells, isCurrent: false, refusals: 0, lastRefusal: undefined, abortSignal: late.signal };
        return this.#carryOut(job, change);
      });
    } finally {
      clearTimeout(timer);
    }
  }

  async #carryOut<Answer>(job: Job, change: ChangeDynamodbCells<Answer>): Promise<Answer> {
    const answers = new Map<string, Answer>();
    for (;;) {
      await this.#settleClock(job);
      const time = this.options.clock.read();
      const decision = decide(job, change, time);
      if (decision.writes.length > 0) {
        const version = this.#nextVersion();
        answers.set(version, decision.answer());
        await this.#write(job, decision.writes, version, time.nowUs);
        // A write whose reply got lost is sent again by the client, and fails the second time: then what is there is what it wrote.
        const landed = job.cells.find((cell) => cell !== undefined && answers.has(cell.version));
        if (landed !== undefined) return answers.get(landed.version) as Answer;
      } else if (job.isCurrent) {
        return decision.answer();
      } else {
        await this.#read(job);
      }
    }
  }

  /**
   * Waits a little after a write of this process to the same items.
   *
   * Whoever writes again at once is always the first to know what is there, and others, who have to lose a race to learn it, would
   * never win one. Those who do not write one after the other do not wait, and those who are alone seldom do.
   */
  async #giveWay(names: readonly string[]): Promise<void> {
    const lastMs = Math.max(...names.map((name) => this.#writtenMs.get(name) ?? Number.NEGATIVE_INFINITY));
    const nowMs = performance.now();
    if (this.#companyAtMs + companyMs < nowMs && Math.random() > aloneShare) return;
    const waitMs = lastMs + Math.random() * givenWayTrips * this.#tripMs - nowMs;
    if (waitMs > 0) await pause(waitMs);
  }

  #wrote(names: readonly string[], sentMs: number): void {
    const nowMs = performance.now();
    this.#tripMs += (nowMs - sentMs - this.#tripMs) / 8;
    if (this.#writtenMs.size >= writtenMost) this.#writtenMs.clear();
    for (const name of names) this.#writtenMs.set(name, nowMs);
  }

  /** Sees to it that the time is known well enough to decide by it. */
  async #settleClock(job: Job): Promise<void> {
    const { client, table, clock, clockErrorUs, timeoutMs } = this.options;
    if (clock.isSettled(clockErrorUs)) return;
    const place = { TableName: table, Key: { [keyName]: { S: clockProbe } }, ConsistentRead: false };
    // Others wait for the same reads, so that the end of this change must not end them.
    const abortSignal = AbortSignal.timeout(timeoutMs);
    const settling = (): Promise<void> => clock.settle(clockErrorUs, () => client.getItem(place, { abortSignal }));
    while (!clock.isSettled(clockErrorUs)) await this.#ask(job, () => beforeAbort(settling(), job.abortSignal));
  }

  /** Looks at all cells of a change in one step. */
  async #read(job: Job): Promise<void> {
    const { client, table } = this.options;
    const places = job.names.map((name) => ({ TableName: table, Key: { [keyName]: { S: name } } }));
    const items = await this.#ask(job, async () => {
      const options = { abortSignal: job.abortSignal };
      if (places.length === 1) return [(await client.getItem({ ...places[0], ConsistentRead: true }, options)).Item];
      const transaction = { TransactItems: places.map((Get) => ({ Get })) };
      return (await client.transactGetItems(transaction, options)).Responses?.map(({ Item }) => Item);
    });
    if (items === undefined) return;
    for (const index of job.names.keys()) this.#see(job, index, cellOf(items[index], table));
    job.isCurrent = true;
  }

  /** Writes if all cells are as they were last seen. Otherwise they are seen as they are, and nothing is written. */
  async #write(job: Job, writes: readonly CellWrite[], version: string, nowUs: number): Promise<void> {
    const { client } = this.options;
    const written = new Map(
      writes.map(({ index, value, ttlUs }) => [index, { value, version, expiresUs: expiryUs(nowUs, ttlUs) }]),
    );
    const steps = job.names.map((name, index) => {
      const condition = this.#condition(job.cells[index]);
      const cell = written.get(index);
      return cell === undefined
        ? { ConditionCheck: { ...condition, Key: { [keyName]: { S: name } } } }
        : { Put: { ...condition, Item: itemOf(name, cell) } };
    });
    const options = { abortSignal: job.abortSignal };
    const [only] = steps;
    const sentMs = performance.now();
    const answer = await this.#ask(job, () =>
      steps.length === 1 && only.Put !== undefined
        ? client.putItem(only.Put, options)
        : client.transactWriteItems({ TransactItems: steps, ClientRequestToken: version }, options),
    );
    if (answer === undefined) return;
    this.#wrote(job.names, sentMs);
    for (const [index, cell] of written) this.#see(job, index, cell);
  }

  /** Sends a request. Undefined when it was refused: then what is known is up to date, and a pause is over. */
  async #ask<Answer>(job: Job, request: () => Promise<Answer>): Promise<Answer | undefined> {
    const { table, timeoutMs } = this.options;
    job.isCurrent = false;
    try {
      job.abortSignal.throwIfAborted();
      return await request();
    } catch (error) {
      const refusal = refusalOf(error);
      if (job.abortSignal.aborted) throw timeoutOf(timeoutMs, job.refusals, (refusal ?? job.lastRefusal)?.why, table);
      if (refusal === undefined) throw failureOf(error, table);
      job.refusals += 1;
      job.lastRefusal = refusal;
      for (const [index, item] of refusal.found) this.#see(job, index, cellOf(item, table));
      // The one cell there is has just been seen.
      job.isCurrent = job.names.length === 1 && refusal.found.has(0);
      await pause(pauseMs(refusal, job.refusals, this.#tripMs));
      return undefined;
    }
  }

  #see(job: Job, index: number, cell: StoredCell | undefined): void {
    job.cells[index] = cell;
    if (cell !== undefined && !cell.version.startsWith(this.#writer)) this.#companyAtMs = performance.now();
    this.#remembered.set(job.names[index], cell);
  }

  #condition(cell: StoredCell | undefined): DynamodbCondition {
    const common = { TableName: this.options.table, ReturnValuesOnConditionCheckFailure: "ALL_OLD" } as const;
    return cell === undefined
      ? { ...common, ConditionExpression: "attribute_not_exists(#k)", ExpressionAttributeNames: { "#k": keyName } }
      : {
          ...common,
          ConditionExpression: "#v = :v",
          ExpressionAttributeNames: { "#v": versionName },
          ExpressionAttributeValues: { ":v": { S: cell.version } },
        };
  }

  #nextVersion(): string {
    this.#writes += 1;
    return `${this.#writer}.${this.#writes.toString(36)}`;
  }
}

/** What a change makes of cells as they were last seen. */
interface Outcome<Answer> {
  readonly writes: readonly CellWrite[];
  /** Throws what the change threw. */
  answer(): Answer;
}

function decide<Answer>(
  { cells }: Job,
  change: ChangeDynamodbCells<Answer>,
  { nowUs, errorUs }: KnownTime,
): Outcome<Answer> {
  try {
    const values = cells.map((cell) => (cell === undefined || cell.expiresUs <= nowUs ? undefined : cell.value));
    const { writes, answer } = change(values, nowUs, errorUs);
    return { writes, answer: () => answer };
  } catch (error) {
    // It may be due to cells of different times. Without writes they are read again before it counts.
    return {
      writes: [],
      answer: () => {
        throw error;
      },
    };
  }
}

function pauseMs({ why }: Refusal, count: number, tripMs: number): number {
  // Whoever has just lost a race knows what is there now. After a pause that would be old again, and the next race as good as lost,
  // so every other try follows at once.
  if (why === "changed" && count % 2 === 1) return 0;
  const [fromMs, toMs] = throttledPausesMs;
  const longestMs =
    why === "throttled" ? Math.min(toMs, fromMs * 2 ** count) : Math.min(lostPauseMs, (1 + tripMs) * count);
  return Math.random() * longestMs;
}

/** The promise, or a rejection as soon as the signal is aborted. */
function beforeAbort<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
    const isOver = (): void => signal.removeEventListener("abort", stop);
    promise.then(resolve, reject).finally(isOver);
  });
}
