import { decide } from "../shared/decide.js";
import { keepForUs } from "../shared/expiry.js";
import { freshKey, type KeyState } from "../shared/keyState.js";
import { decideLease } from "../shared/lease.js";
import type { LeaseOperation, LimitOperation, Operation, ReplyTo } from "../shared/operation.js";
import { readState, stateText } from "../shared/stateText.js";
import type { CellChange, Cells, CellWrite } from "./cells.js";
import type { Store } from "./store.js";

/** Operations that are carried out together in one change, at most. */
const TOGETHER_MOST = 256;
/** Changes of the same keys that are under way at once, at most: all but the last of them hang. */
const LANES_MOST = 8;

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
        const outcomes = await cells.change(keys, (values, nowUs) => changeAll(keys, values, operations, nowUs));
        for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index].reply);
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
    transact<Op extends Operation>(keys: readonly string[], operation: Op): Promise<ReplyTo<Op>> {
      return new Promise<ReplyTo<Op>>((resolve, reject) => {
        const name = JSON.stringify(keys);
        let queue = queues.get(name);
        if (queue === undefined) {
          queue = { waiting: [], batch: [], lanes: 0, pending: new Map() };
          queues.set(name, queue);
        }
        const sequence = "sequence" in operation ? operation.sequence : 0;
        const isAgain = queue.pending.get(senderOf(operation)) === sequence;
        queue.pending.set(senderOf(operation), sequence);
        queue.waiting.push({ operation, resolve: (reply) => resolve(reply as ReplyTo<Op>), reject });
        if (queue.batch.length === 0 || (isAgain && queue.lanes < LANES_MOST)) void work(name, keys, queue);
      });
    },
  };
}

/** Whose operation it is; itself where nobody says. */
function senderOf(operation: Operation): string | Operation {
  return "asker" in operation && operation.asker !== "" ? operation.asker : operation;
}

/** Carries out operations one after the other, reading and writing each cell once. */
function changeAll(
  keys: readonly string[],
  values: readonly (string | undefined)[],
  operations: readonly Operation[],
  nowUs: number,
): CellChange<readonly Outcome[]> {
  return operations[0].kind === "lease"
    ? changeLease(keys[0], values[0], operations as readonly LeaseOperation[], nowUs)
    : changeLimits(keys, values, operations as readonly LimitOperation[], nowUs);
}

function changeLimits(
  keys: readonly string[],
  values: readonly (string | undefined)[],
  operations: readonly LimitOperation[],
  nowUs: number,
): CellChange<readonly Outcome[]> {
  const read = (): KeyState[] =>
    keys.map((key, index) => {
      const value = values[index];
      return value === undefined ? freshKey(nowUs) : readState(value, key);
    });
  const changing = operations.filter(({ kind }) => kind !== "look");
  const states = read();
  const replies = new Map(changing.map((operation) => [operation, decide(states, operation, nowUs)]));
  const writes = changing.length === 0 ? [] : states.map((state, index) => writeOf(state, index));
  // A look may bring what it sees up to date, and must not change anything: it gets a copy.
  const answer = operations.map((operation) => ({ reply: replies.get(operation) ?? decide(read(), operation, nowUs) }));
  return { writes, answer };
}

function writeOf(state: KeyState, index: number): CellWrite {
  return { index, value: stateText(state), ttlUs: keepForUs(state, state.seenUs) };
}

function changeLease(
  name: string,
  value: string | undefined,
  operations: readonly LeaseOperation[],
  nowUs: number,
): CellChange<readonly Outcome[]> {
  let current = value;
  let write: CellWrite | undefined;
  const answer = operations.map((operation) => {
    const { reply, text, keepForUs: ttlUs } = decideLease(current, operation, nowUs, name);
    if (text !== undefined) {
      current = text;
      write = { index: 0, value: text, ttlUs };
    }
    return { reply };
  });
  return { writes: write === undefined ? [] : [write], answer };
}
