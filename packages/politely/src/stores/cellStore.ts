import { WallCalendar } from "../core/calendar.js";
import { StoreError } from "../errors.js";
import type { CellChange, Cells, CellWrite } from "./cells.js";
import { decide } from "./decide.js";
import { decideLease, type LeaseTime } from "./decideLease.js";
import type { LeaseOperation, LimitOperation, Operation, ReplyTo } from "./operations.js";
import type { Store } from "./store.js";
import { readStored, StoredKey, storedText } from "./storedKey.js";

/** Operations that are carried out together in one change, at most. */
const TOGETHER_MOST = 256;
/** Changes of the same keys that are under way at once, at most: all but the last of them hang. */
const LANES_MOST = 8;

/** Where the largest token of all leases is kept, for ever: on a timeline that is no date it says what is larger than all before. */
const LEASE_TOKENS = "lease tokens";

/** One operation that waits to be carried out, and whoever waits for it. */
interface Errand {
  readonly operation: Operation;
  readonly resolve: (reply: object) => void;
  readonly reject: (reason: unknown) => void;
}

/** The operations on one set of keys. */
interface Queue {
  /** Not yet under way. */
  readonly waiting: Errand[];
  /** Under way, in the change that was begun last. */
  batch: readonly Errand[];
  /** How many changes are under way. */
  lanes: number;
  /** All that is not yet answered: the sequence of each asker, or the operation itself where it has none. */
  readonly pending: Map<string | Operation, number>;
}

/** The outcome of one of several operations. */
interface Outcome {
  readonly reply: object;
}

/**
 * Makes a store of a place that changes several strings in one atomic step, by running the core inside that step.
 *
 * Operations on the same keys that come while one is under way are carried out together in the next change, one after the
 * other, so that a busy key costs one change for many. When an operation is sent again before it is answered, its sender has waited for long enough: the change
 * that is under way may never be answered, and the next is begun beside it.
 */
export function cellStore(cells: Cells): Store {
  const queues = new Map<string, Queue>();
  // A store that knows the time of day tells it; one that does not leaves it to the process.
  let storeMs = 0;
  const calendar = new WallCalendar(() => (cells.timeline === "epoch" ? storeMs : (cells.wallMs?.() ?? Date.now())));

  async function work(name: string, keys: readonly string[], queue: Queue): Promise<void> {
    queue.lanes += 1;
    let own: readonly Errand[] = [];
    // Only the lane begun last goes on: what is answered after all is the end of the others.
    while (queue.waiting.length > 0 && (queue.batch === own || own.length === 0)) {
      own = queue.waiting.splice(0, TOGETHER_MOST);
      queue.batch = own;
      const batch = own;
      try {
        const operations = batch.map(({ operation }) => operation);
        const outcomes = await cells.change(keys, (values, nowUs, errorUs = 0) => {
          storeMs = Math.floor(nowUs / 1000);
          const time = { isDate: cells.timeline === "epoch", errorUs, statedUs: cells.clockErrorUs ?? 0 };
          return changeAll(keys, values, operations, nowUs, calendar, time);
        });
        for (const [index, { resolve }] of batch.entries()) {
          const { reply } = outcomes[index];
          if ("wake" in reply) cells.bell?.ring(reply.wake as readonly string[]);
          resolve(reply);
        }
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
      for (const { operation } of batch) queue.pending.delete(senderOf(operation));
    }
    queue.lanes -= 1;
    if (queue.batch === own) queue.batch = [];
    if (queue.lanes === 0 && queue.waiting.length === 0) queues.delete(name);
  }

  return {
    name: cells.name,
    timeline: cells.timeline,
    ...(cells.bell === undefined ? {} : { listen: cells.bell.listen }),
    ...(cells.clockErrorUs === undefined ? {} : { clockErrorUs: cells.clockErrorUs }),
    isContended: cells.isContended === true,
    transact<Op extends Operation>(asked: readonly string[], operation: Op): Promise<ReplyTo<Op>> {
      const isCounted = operation.kind === "lease" && operation.act === "take" && cells.timeline === "machine";
      const keys = isCounted ? [...asked, LEASE_TOKENS] : asked;
      return new Promise<ReplyTo<Op>>((resolve, reject) => {
        const name = JSON.stringify(keys);
        const queue: Queue = queues.get(name) ?? { waiting: [], batch: [], lanes: 0, pending: new Map() };
        queues.set(name, queue);
        const sequence = "asker" in operation ? operation.number : 0;
        const isAgain = queue.pending.get(senderOf(operation)) === sequence;
        queue.pending.set(senderOf(operation), sequence);
        queue.waiting.push({ operation, resolve: (reply) => resolve(reply as ReplyTo<Op>), reject });
        if (queue.batch.length === 0 || (isAgain && queue.lanes < LANES_MOST)) void work(name, keys, queue);
      });
    },
  };
}

/** Whose operation it is; itself where that is nobody's. */
function senderOf(operation: Operation): string | Operation {
  if ("process" in operation) return operation.process;
  return "asker" in operation ? operation.asker : operation;
}

/** Carries out operations one after the other, reading and writing each cell once. */
function changeAll(
  keys: readonly string[],
  values: readonly (string | undefined)[],
  operations: readonly Operation[],
  nowUs: number,
  calendar: WallCalendar,
  time: LeaseTime,
): CellChange<readonly Outcome[]> {
  return operations[0].kind === "lease"
    ? changeLease(keys[0], values, operations as readonly LeaseOperation[], nowUs, time)
    : changeLimits(keys, values, operations as readonly LimitOperation[], nowUs, calendar);
}

function changeLimits(
  keys: readonly string[],
  values: readonly (string | undefined)[],
  operations: readonly LimitOperation[],
  nowUs: number,
  calendar: WallCalendar,
): CellChange<readonly Outcome[]> {
  const read = (): StoredKey[] =>
    values.map((value, index) =>
      value === undefined ? new StoredKey(calendar) : readStored(value, keys[index], calendar),
    );
  const changing = operations.filter(({ kind }) => kind !== "look");
  const states = read();
  const replies = new Map(changing.map((operation) => [operation, decide(states, operation, nowUs)]));
  const writes = changing.length === 0 ? [] : states.map((state, index) => writeOf(state, index));
  // A look brings what it sees up to date, and must not change anything: it gets a copy.
  const answer = operations.map((operation) => ({ reply: replies.get(operation) ?? decide(read(), operation, nowUs) }));
  return { writes, answer };
}

function writeOf(state: StoredKey, index: number): CellWrite {
  return { index, value: storedText(state), ttlUs: Math.max(1, state.keepUntilUs - state.changedUs) };
}

function changeLease(
  name: string,
  [lease, tokens = "0"]: readonly (string | undefined)[],
  operations: readonly LeaseOperation[],
  nowUs: number,
  time: LeaseTime,
): CellChange<readonly Outcome[]> {
  let current = lease;
  let largest = Number(tokens);
  if (!Number.isSafeInteger(largest))
    throw new StoreError(`The value stored for "${LEASE_TOKENS}" is not one of politely's. Remove it.`, {
      isLasting: true,
    });
  const writes: CellWrite[] = [];
  const answer = operations.map((operation) => {
    const epochUs = Math.max(operation.epochUs, largest + 1);
    const { reply, text, keepForUs: ttlUs } = decideLease(current, { ...operation, epochUs }, nowUs, name, time);
    if (text !== undefined) {
      current = text;
      writes[0] = { index: 0, value: text, ttlUs };
    }
    if (!time.isDate && operation.act === "take" && reply.isHeld && reply.token > largest) {
      largest = reply.token;
      writes[1] = { index: 1, value: String(largest), ttlUs: Number.MAX_SAFE_INTEGER };
    }
    return { reply };
  });
  return { writes, answer };
}
