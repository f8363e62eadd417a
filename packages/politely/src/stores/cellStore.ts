import { decide } from "../core/shared/decide.js";
import { keepForUs } from "../core/shared/expiry.js";
import { freshKey, type KeyState } from "../core/shared/keyState.js";
import { decideLease } from "../core/shared/lease.js";
import type { LeaseOperation, LimitOperation, Operation, ReplyTo } from "../core/shared/operation.js";
import { readState, stateText } from "../core/shared/stateText.js";
import type { CellChange, Cells, CellWrite } from "./cells.js";
import type { Store } from "./store.js";

/** Operations that are carried out together in one change, at most. */
const TOGETHER_MOST = 256;

/** One operation that waits to be carried out, and whoever waits for it. */
interface Errand {
  readonly operation: Operation;
  readonly resolve: (reply: object) => void;
  readonly reject: (reason: unknown) => void;
}

/** The outcome of one of several operations. */
interface Outcome {
  readonly reply: object;
}

/**
 * Makes a store of a place that changes several strings in one atomic step, by running the core inside that step.
 *
 * Operations on the same keys that come while one is under way are carried out together in the next change, one after the
 * other, so that a busy key costs one change for many.
 */
export function cellStore(cells: Cells): Store {
  const queues = new Map<string, Errand[]>();

  async function work(name: string, keys: readonly string[], queue: Errand[]): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.splice(0, TOGETHER_MOST);
      try {
        const operations = batch.map(({ operation }) => operation);
        const outcomes = await cells.change(keys, (values, nowUs) => changeAll(keys, values, operations, nowUs));
        for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index].reply);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    queues.delete(name);
  }

  return {
    name: cells.name,
    timeline: cells.timeline,
    transact<Op extends Operation>(keys: readonly string[], operation: Op): Promise<ReplyTo<Op>> {
      return new Promise<ReplyTo<Op>>((resolve, reject) => {
        const name = JSON.stringify(keys);
        const errand: Errand = { operation, resolve: (reply) => resolve(reply as ReplyTo<Op>), reject };
        const queue = queues.get(name);
        if (queue !== undefined) {
          queue.push(errand);
          return;
        }
        const begun = [errand];
        queues.set(name, begun);
        void work(name, keys, begun);
      });
    },
  };
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
