import { DeadlineError, PolitelyError, RobotsError } from "politely";
import type { Outcome } from "./indexLine.js";

/** How a URL ended, and what to say of it. */
export interface Verdict {
  readonly outcome: Outcome;
  readonly error?: string;
}

/** Statuses that may be different next time. */
const PASSING: readonly number[] = [408, 418, 420, 421, 425, 429];

/** What an answer means for the list. `hasFile` tells whether there is a file that a "not modified" speaks of. */
export function verdictOfStatus(status: number, hasFile: boolean): Verdict {
  if (status >= 200 && status < 300) return { outcome: "fetched" };
  if (status === 304 && hasFile) return { outcome: "unchanged" };
  const isPassing = PASSING.includes(status) || (status >= 500 && status !== 501 && status !== 505);
  return { outcome: isPassing ? "failed" : "refused", error: `status ${status}` };
}

/** What a failure means for the list. Robots.txt that forbids a URL is an answer for good; one that could not be had is not. */
export function verdictOfError(error: unknown): Verdict {
  if (error instanceof RobotsError) {
    const isForbidden = !/^it (could not|answered)/.test(error.reason);
    return { outcome: isForbidden ? "refused" : "failed", error: `robots.txt: ${error.reason}` };
  }
  if (error instanceof DeadlineError) {
    return { outcome: "failed", error: `would have to wait longer than --max-wait: ${error.reason}` };
  }
  if (error instanceof PolitelyError) return { outcome: "failed", error: error.message };
  const { code, message } = causeOf(error);
  if (code === "POLITELY_REDIRECT") return { outcome: "refused", error: message };
  return { outcome: "failed", error: code === undefined || message.includes(code) ? message : `${message} (${code})` };
}

const DISK_CODES = [
  "ENOSPC",
  "EDQUOT",
  "EFBIG",
  "EROFS",
  "EIO",
  "EACCES",
  "EPERM",
  "EMFILE",
  "ENFILE",
  "ENOTDIR",
  "ENOENT",
];

/** What the disk said, when it was the disk that failed: no request will do better. */
export function diskFailure(error: unknown): string | undefined {
  const { code, syscall, message } = Object(error) as { code?: unknown; syscall?: unknown; message?: unknown };
  if (typeof code !== "string") return undefined;
  if (/^SQLITE_(FULL|IOERR|READONLY|CORRUPT|CANTOPEN)/.test(code)) return `${String(message)} (${code})`;
  const isOfFile = typeof syscall === "string" && !/connect|getaddrinfo|read/.test(syscall);
  return isOfFile && DISK_CODES.includes(code) ? String(message) : undefined;
}

function causeOf(error: unknown): { readonly code: string | undefined; readonly message: string } {
  let current = error;
  for (let depth = 0; depth < 8; depth++) {
    const { cause } = Object(current) as { cause?: unknown };
    if (cause === undefined || cause === null) break;
    current = cause;
  }
  const { code, message } = Object(current) as { code?: unknown; message?: unknown };
  const text = typeof message === "string" && message !== "" ? message : String(current);
  return { code: typeof code === "string" ? code : undefined, message: text.slice(0, 300) };
}
