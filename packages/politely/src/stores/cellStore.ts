import { WallCalendar } from "../core/calendar.js";
import { StoreError } from "../errors.js";
import type { CellChange, Cells, CellWrite } from "./cells.js";
import { decide, isDone } from "./decide.js";
import { decideLease, type LeaseTime } from "./decideLease.js";
import type { LeaseOperation, LimitOperation, Operation, ReplyTo } from "./operations.js";
import type { Store } from "./store.js";
import { processOf, readStored, readText, StoredKey, storedText, textOf } from "./storedKey.js";
import type { NotedChange, NotedOutcome } from "./swapCells.js";

/** Operations that are carried out together in one change, at most. */
const TOGETHER_MOST = 256;
/** Changes of the same keys that are under way at once, at most: all but the last of them hang. */
const LANES_MOST = 8;

/** Where the largest token of all leases is kept, for ever: on a timeline that is no date it says what is larger than all before. */
const LEASE_TOKENS = "lease tokens";

/** Notes for others have this version, and at most so many characters. */
const VERSION = 1;
const NOTE_MOST = 4_000;

/** One operation that waits to be carried out, and whoever waits for it. */
interface Waiter {
  readonly operation: Operation;
  readonly resolve: (reply: object) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Makes a store of a place that changes several strings in one atomic step, by running the core inside that step.
 *
 * Operations on the same keys that come while one is under way are carried out together in the next change, one after the
 * other, so that a busy key costs one change for many. When an operation is sent again before it is answered, its sender has waited for long enough: the change
 * that is under way may never be answered, and the next is begun beside it.
 */
export function cellStore(cells: Cells): Store {
  const { bell, clockErrorUs, name, timeline } = cells;
  const queues = new Map<string, Queue>();
  const clock = clockOf(cells);
  return {
    name,
    timeline,
    ...(bell && { listen: bell.listen }),
    ...(clockErrorUs !== undefined && { clockErrorUs }),
    isContended: cells.isContended === true,
    transact<Op extends Operation>(asked: readonly string[], operation: Op): Promise<ReplyTo<Op>> {
      const isCounted = operation.kind === "lease" && operation.act === "take" && timeline === "machine";
      const keys = isCounted ? [...asked, LEASE_TOKENS] : asked;
      const id = JSON.stringify(keys);
      const queue = queues.get(id) ?? new Queue(cells, keys, clock, () => queues.delete(id));
      queues.set(id, queue);
      return queue.carryOut(operation) as Promise<ReplyTo<Op>>;
    },
  };
}

/** The time of a store, for calendars and leases. */
type StoreClock = ReturnType<typeof clockOf>;

/** A store that knows the time of day tells it; one that does not leaves it to the process. */
function clockOf({ clockErrorUs: statedUs = 0, timeline, wallMs = () => Date.now() }: Cells) {
  const isDate = timeline === "epoch";
  let nowMs = 0;
  const at = (nowUs: number, errorUs: number): LeaseTime => {
    nowMs = Math.floor(nowUs / 1000);
    return { isDate, errorUs, statedUs };
  };
  return { calendar: new WallCalendar(() => (isDate ? nowMs : wallMs())), at };
}

/** The operations on one set of keys. */
class Queue {
  /** Not yet under way. */
  readonly #waiting: Waiter[] = [];
  /** Under way, in the change that was begun last. */
  #batch: Waiter[] = [];
  /** How many changes are under way. */
  #lanes = 0;
  /** All that is not yet answered: the sequence of each asker, or the operation itself where it has none. */
  readonly #pending = new Map<string | Operation, number>();

  constructor(
    private readonly cells: Cells,
    private readonly keys: readonly string[],
    private readonly clock: StoreClock,
    private readonly onEmpty: () => void,
  ) {}

  carryOut(operation: Operation): Promise<object> {
    const sender = senderOf(operation);
    const sequence = "asker" in operation ? operation.number : 0;
    const isAgain = this.#pending.get(sender) === sequence;
    this.#pending.set(sender, sequence);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operation, resolve, reject });
      if (this.#batch.length === 0 || (isAgain && this.#lanes < LANES_MOST)) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#lanes += 1;
    let own: Waiter[] = [];
    // Only the lane begun last goes on: what is answered after all is the end of the others.
    while (this.#waiting.length > 0 && (this.#batch === own || own.length === 0)) {
      own = this.#waiting.splice(0, TOGETHER_MOST);
      this.#batch = own;
      await this.#change(own);
      for (const { operation } of own) this.#pending.delete(senderOf(operation));
    }
    this.#lanes -= 1;
    if (this.#batch === own) this.#batch = [];
    if (this.#lanes === 0 && this.#waiting.length === 0) this.onEmpty();
  }

  async #change(batch: Waiter[]): Promise<void> {
    const { cells, clock, keys } = this;
    const operations = (): Operation[] => batch.map(({ operation }) => operation);
    const change: NotedChange<readonly object[]> = (values, nowUs, errorUs = 0, notes) => {
      // What was asked for while others were faster goes along.
      if (this.#batch === batch) batch.push(...this.#waiting.splice(0, TOGETHER_MOST - batch.length));
      const time = clock.at(nowUs, errorUs);
      const own = operations();
      if (areLeases(own)) return changeLease(keys[0], values, own, nowUs, time);
      const others = notes?.flatMap((note) => readNote(note, keys));
      return changeLimits({ keys, values, calendar: clock.calendar }, own as LimitOperation[], others, nowUs);
    };
    change.note = () => noteOf(keys, operations());
    try {
      const replies = await cells.change(keys, change);
      // Those who came for a try that was not kept wait for the next change.
      this.#waiting.unshift(...batch.splice(replies.length));
      for (const [index, reply] of replies.entries()) {
        if ("wake" in reply) cells.bell?.ring(reply.wake as readonly string[]);
        batch[index].resolve(reply);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

function areLeases(operations: readonly Operation[]): operations is readonly LeaseOperation[] {
  return operations[0].kind === "lease";
}

/** Whose operation it is; itself where that is nobody's. */
function senderOf(operation: Operation): string | Operation {
  if ("process" in operation) return operation.process;
  return "asker" in operation ? operation.asker : operation;
}

/** The takes among some operations, as data, for others to carry out in our stead; undefined: none, or too much. What a take came to is remembered for us. */
function noteOf(keys: readonly string[], operations: readonly Operation[]): string | undefined {
  const takes = operations.filter(({ kind }) => kind === "take");
  const note = textOf([VERSION, keys, takes]);
  return takes.length > 0 && note.length <= NOTE_MOST ? note : undefined;
}

/** What another process wants carried out on the same keys. */
function readNote(note: string, keys: readonly string[]): readonly LimitOperation[] {
  const [version, names, takes] = readText<readonly [number, string[], LimitOperation[]]>(note);
  return version === VERSION && names.join("\n") === keys.join("\n") ? takes : [];
}

/** The cells of a change. */
interface KeyCells {
  readonly keys: readonly string[];
  readonly values: readonly (string | undefined)[];
  readonly calendar: WallCalendar;
}

/** Carries out operations one after the other, those of others first, reading and writing each cell once. */
function changeLimits(
  { keys, values, calendar }: KeyCells,
  operations: readonly LimitOperation[],
  others: readonly LimitOperation[] | undefined,
  nowUs: number,
): NotedOutcome<readonly object[]> {
  const read = (): StoredKey[] =>
    values.map((value, index) =>
      value === undefined ? new StoredKey(calendar) : readStored(value, keys[index], calendar),
    );
  const states = read();
  const changing = operations.filter(({ kind }) => kind !== "look");
  // What others may have carried out in our stead is not written again.
  const isNew = (operation: LimitOperation): boolean => others === undefined || !isDone(states, operation);
  const isChanged = changing.some(isNew);
  const foreign = isChanged ? (others ?? []) : [];
  const wake = foreign.flatMap((operation) => wokenBy(decide(states, operation, nowUs)));
  const replies = new Map(changing.map((operation) => [operation, decide(states, operation, nowUs)]));
  const writes = isChanged ? states.map(writeOf) : [];
  // Our own hear of it by the reply.
  for (const [operation, reply] of replies) {
    const own = processOf(`${senderOf(operation) as string}.`);
    wake.push(...wokenBy(reply).filter((asker) => processOf(asker) !== own));
  }
  // A look brings what it sees up to date, and must not change anything: it gets a copy.
  return { writes, answer: operations.map((one) => replies.get(one) ?? decide(read(), one, nowUs)), wake };
}

function wokenBy(reply: object): readonly string[] {
  return "wake" in reply ? (reply.wake as readonly string[]) : [];
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
): CellChange<readonly object[]> {
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
    return reply;
  });
  return { writes, answer };
}
