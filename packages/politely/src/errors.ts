/** Base of every error thrown on purpose. Match on `code`; messages may change between versions. */
export abstract class PolitelyError extends Error {
  abstract readonly code: string;
}

/** The request could not have started within its `maxWait`, or reached its deadline while waiting. It took nothing. */
export class DeadlineError extends PolitelyError {
  override readonly name = "DeadlineError";
  readonly code = "POLITELY_DEADLINE";

  constructor(
    readonly key: string,
    /** How long it would have to wait at least, in milliseconds; Infinity while it is paused without an end. */
    readonly waitMs: number,
    /** Why. */
    readonly reason: string,
    maxWaitMs: number,
  ) {
    const [toGo, advice] =
      waitMs === Number.POSITIVE_INFINITY
        ? ["no end in sight", "Come back when that is over"]
        : [`at least ${Math.ceil(waitMs)} ms to go`, "Raise maxWait, or come back later"];
    super(`"${key}" cannot start within its maxWait of ${maxWaitMs} ms: ${toGo}, ${reason}. ${advice}.`);
  }
}

/** The lane of `key` already holds `limit` requests. Shed load, or raise `maxQueue`. */
export class QueueFullError extends PolitelyError {
  override readonly name = "QueueFullError";
  readonly code = "POLITELY_QUEUE_FULL";

  constructor(
    readonly key: string,
    /** How many may wait there: `maxQueue`. */
    readonly limit: number,
  ) {
    super(`Lane "${key}" is full: ${limit} requests already wait. Shed load or raise maxQueue.`);
  }
}

/** The limiter was closed. */
export class ClosedError extends PolitelyError {
  override readonly name = "ClosedError";
  readonly code = "POLITELY_CLOSED";

  constructor(readonly key: string) {
    super(`The limiter is closed; the request for "${key}" was not started. Make a new limiter to go on.`);
  }
}

/** How the reason begins where there is no robots.txt to go by. */
const ABSENT = "it could not be had";

/** The site's robots.txt does not allow the URL, or could not be had. Nothing was sent to it, and nothing was taken. */
export class RobotsError extends PolitelyError {
  override readonly name = "RobotsError";
  readonly code = "POLITELY_ROBOTS";

  constructor(
    readonly key: string,
    readonly url: string,
    /** Which line of the robots.txt says so, or why there is none. */
    readonly reason: string,
  ) {
    super(
      reason.startsWith(ABSENT)
        ? `${url} is not asked for, since robots.txt of "${key}" is not known: ${reason}. Try again later, or turn http.robots off.`
        : `robots.txt of "${key}" does not allow ${url}: ${reason}. Leave it out, or turn http.robots off.`,
    );
  }
}

/** One thing that is wrong with a policy, and where: `hosts["x.org"].rate` say. */
export interface PolicyProblem {
  readonly path: string;
  readonly message: string;
}

/** The policy has at least one problem; all of them are listed. Nothing of it was applied. */
export class PolicyError extends PolitelyError {
  override readonly name = "PolicyError";
  readonly code = "POLITELY_POLICY";

  constructor(readonly problems: readonly PolicyProblem[]) {
    super(
      `The policy has ${problems.length === 1 ? "a problem" : `${problems.length} problems`}:\n` +
        problems.map(({ path, message }) => `  ${path === "" ? "(policy)" : path}: ${message}`).join("\n"),
    );
  }
}

/** The store could not be asked, or answered something it never should. Nothing was granted; the cause is the client's own error. */
export class StoreError extends PolitelyError {
  override readonly name = "StoreError";
  readonly code = "POLITELY_STORE";
  /**
   * True for what waiting does not mend: a missing table, a wrong password, a value that is not ours, a closed client. Then the
   * outage policy does not apply, and callers get this error.
   */
  readonly isLasting: boolean;

  constructor(
    /** What happened and what to do, in a sentence. */
    message: string,
    options?: { readonly cause?: unknown; readonly isLasting?: boolean },
  ) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.isLasting = options?.isLasting ?? false;
  }
}

/** As many keys as the limiter may remember owe time, so that no further host can be paced. The request took nothing. */
export class CapacityError extends PolitelyError {
  override readonly name = "CapacityError";
  readonly code = "POLITELY_CAPACITY";

  constructor(
    readonly key: string,
    /** How many keys owe time: `maxKeys`, and those beside that the policy names. */
    readonly owing: number,
    /** Until the first of them owes nothing, in milliseconds; Infinity while each waits for an answer, 0 where not all have been looked at yet. */
    readonly waitMs: number,
  ) {
    const until =
      waitMs === Number.POSITIVE_INFINITY
        ? "owe time, all until an answer comes"
        : waitMs > 0
          ? `owe time, the first one for ${Math.ceil(waitMs)} ms more`
          : "are known, and those looked at so far owe time";
    super(
      `"${key}" cannot be paced: ${owing} keys ${until}. Come back later, raise maxKeys, or name the host in the policy.`,
    );
  }
}
