/** Somebody used the command in a way that cannot work: exit code 2, one line, nothing was begun. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The work failed, or found what it was looking for: exit code 1. What was done before stays. */
export class WorkError extends Error {
  override readonly name = "WorkError";
}
