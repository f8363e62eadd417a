import { randomBytes } from "node:crypto";
import { join, resolve } from "node:path";
import { setFlagsFromString } from "node:v8";
import { PolicyError } from "politely";
import { sqliteStore } from "politely/sqlite";
import { UsageError } from "../errors.js";
import type { Io } from "../io.js";
import { readUrls } from "../list/urlList.js";
import { countText } from "../words.js";
import { type Folder, openFolder, unusable } from "./folder.js";
import { type GetOptions, policyOf } from "./getOptions.js";
import { Keys } from "./keys.js";
import type { GetObserver, GetSummary } from "./observer.js";
import { sqliteQueue } from "./queue/sqliteQueue.js";
import type { UrlQueue } from "./queue/urlQueue.js";
import { reconcile } from "./recorder.js";
import { addAll, restoreList } from "./restore.js";
import { openShare, type Shared } from "./share.js";
import { openSqlite } from "./sqlite.js";
import { StagedList } from "./stagedList.js";
import { Worker } from "./worker.js";

const LEASE_MS = 30_000;
/** Beyond this, memory is worth more than a tenth of the pace: what is garbage is looked for sooner. */
const LONG_LIST = 20_000;
/** Clients try again with growing pauses: others may find a store that is back so much later. */
const LATE_MS = 10_000;
/** What becomes of URLs whose lines are gone from the index. */
const LOST = "URLs whose lines are gone are asked for again";
const LOST_SHARED = "what the shared list has as finished stays so; --refresh asks for it again";

/**
 * Fetches a list into a folder, within the limits of the policy, and resolves to how that went.
 *
 * Whatever ends it, kill -9 included, the same call goes on where it was: no URL is asked for again whose line stands in the index,
 * and pacing, cooldowns and quotas go on as well. Throws `UsageError` before anything was begun. Throws `WorkError` when it ends early or
 * something was not fetched, with what to do; `observer.end` has been called then, unless nothing was begun.
 */
export async function runGet(options: GetOptions, io: Io, observer: GetObserver): Promise<GetSummary> {
  const keys = await keysOf(options);
  if (options.args.length === 0 && options.share === undefined) {
    throw new UsageError("no URLs. Name some, or a file with one a line, or - for stdin.");
  }
  const list = await StagedList.read(readUrls(options.args, io));
  if (list.count > LONG_LIST) setFlagsFromString("--heap-growing-percent=40");
  try {
    if (list.count === 0 && options.share === undefined) throw new UsageError("the list has no URLs.");
    const folder = openFolder(resolve(io.cwd, options.out));
    try {
      return await runIn(folder, { list, keys, options, io, observer });
    } finally {
      await folder.close();
    }
  } finally {
    list.remove();
  }
}

interface Task {
  readonly list: StagedList;
  readonly keys: Keys;
  readonly options: GetOptions;
  readonly io: Io;
  readonly observer: GetObserver;
}

async function runIn(folder: Folder, task: Task): Promise<GetSummary> {
  const { keys, options, io, observer } = task;
  const worker = randomBytes(8).toString("hex");
  const shared = await openLists(folder, task, worker);
  const isShared = options.share !== undefined;
  try {
    await begin(folder, shared.queue, task);
    const getting = new Worker({ folder, shared, keys, options, io, observer, name: worker, isShared });
    return await getting.run();
  } finally {
    await shared.close();
  }
}

/** Puts the URLs on the list, tells it what the index says, and begins. */
async function begin(folder: Folder, queue: UrlQueue, task: Task): Promise<void> {
  const { list, keys, options, io, observer } = task;
  const { interrupted } = io;
  const { index, journal } = folder;
  const isShared = options.share !== undefined;
  const isRefresh = options.isRefresh === true;
  const graceMs = (options.leaseMs ?? LEASE_MS) + LATE_MS;
  if (folder.hasLostLines) observer.log(`index.jsonl is shorter than it was: ${isShared ? LOST_SHARED : LOST}`);
  let hasReturned = true;
  const restore = async (): Promise<void> => {
    hasReturned = true;
  };
  queue.onReturn?.({ restore, graceMs });
  // A store that was away in between may have forgotten what it was told before.
  while (hasReturned) {
    hasReturned = false;
    if (isShared) await queue.renew();
    await addAll(queue, { list, keys, interrupted });
    const found = await reconcile({ index, journal, queue });
    if (found > 0) observer.log(`lines of the index that the journal lacks are taken over: ${countText(found)}`);
    const isAgain = await queue.begin({ again: isRefresh ? true : isShared ? false : "if-finished" });
    const what = isRefresh
      ? "what is finished is asked for again, too"
      : "nothing is left: the whole list is asked for again";
    if (isAgain) observer.log(`${what}, for what has changed`);
  }
  const { total } = await queue.counts();
  const memory = { list, keys, interrupted, index, fromBytes: index.bytes, total, isRefresh };
  queue.onReturn?.({ restore: (direct) => restoreList(direct, memory), graceMs });
}

/** The list and the store of the limits: those of the folder, or those that are shared. */
async function openLists(folder: Folder, { options, io, observer }: Task, worker: string): Promise<Shared> {
  const { share, list = "default", leaseMs = LEASE_MS } = options;
  const given = { name: list, worker, leaseMs };
  if (share !== undefined) {
    const { cwd, stopped } = io;
    return openShare(share, { ...given, cwd, stopped, log: (line) => observer.log(line) });
  }
  return { queue: sqliteQueue(folder.database, { ...given, isOwn: true }), ...openLimits(folder.path) };
}

/** What the limits remember, beside the journal: a file of its own, since that one is locked for as long as it is open. */
function openLimits(path: string): Pick<Shared, "store" | "close"> {
  try {
    const limits = openSqlite(join(path, "limits.db"));
    const store = sqliteStore(limits);
    return {
      store,
      async close() {
        store.close();
        limits.close();
      },
    };
  } catch (error) {
    throw unusable(path, error, "limits.db");
  }
}

async function keysOf(options: GetOptions): Promise<Keys> {
  // Grouping by registrable domain needs a list of its own, which takes a moment to load.
  if (options.policy.groupBy === "domain") await import("politely/domains");
  try {
    return new Keys(policyOf(options));
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    const problems = error.problems.map(({ path, message }) => `${path}: ${message}`).join("; ");
    throw new UsageError(`the policy has problems: ${problems}`);
  }
}
