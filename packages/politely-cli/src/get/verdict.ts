import { DeadlineError, PolitelyError, RobotsError } from "politely";
import { durationText } from "../words.js";
import type { Outcome } from "./indexLine.js";
import { REDIRECT } from "./redirects.js";

/** How a URL ended, and what to say of it. */
export interface Verdict {
  readonly outcome: Outcome;
  readonly error?: string;
}

const TOO_LARGE = "UND_ERR_RES_EXCEEDED_MAX_SIZE";
const UNREACHABLE = "fetch failed: ";
const TOO_SLOW = "UND_ERR_BODY_TIMEOUT";
/** Statuses that may be different next time. */
const PASSING: readonly number[] = [408, 421, 425];

/** What is to be known of an answer beside its status. */
export interface AnswerFacts {
  /** It says that the file from before is still right, and was asked for that. */
  readonly isUnchanged: boolean;
  /** It asks to be left alone. */
  readonly isThrottled: boolean;
  /** Its body is a part of the page, which nobody asked for. */
  readonly isPart: boolean;
}

/** What an answer means for the list. */
export function verdictOfStatus(status: number, { isUnchanged, isThrottled, isPart }: AnswerFacts): Verdict {
  if (isPart) return { outcome: "refused", error: `status ${status}, a part of the page only` };
  if (status >= 200 && status < 300) return { outcome: "fetched" };
  if (isUnchanged) return { outcome: "unchanged" };
  const isPassing = isThrottled || PASSING.includes(status) || (status >= 500 && status !== 501 && status !== 505);
  return { outcome: isPassing ? "failed" : "refused", error: `status ${status}` };
}

/** Whether an answer carries a part of the page: a 206, unless its part is the whole. */
export function isPart(status: number, contentRange: string | string[] | undefined): boolean {
  if (status !== 206) return false;
  const [, last, size] = /^bytes 0-(\d+)\/(\d+)$/i.exec(String(contentRange)) ?? [];
  return last === undefined || Number(last) + 1 !== Number(size);
}

/** What a failure means for the list. Robots.txt that forbids a URL is an answer for good; one that could not be had is not. */
export function verdictOfError(error: unknown): Verdict {
  if (error instanceof RobotsError) return verdictOfRobots(error.reason);
  if (error instanceof DeadlineError) {
    const reason = error.reason.replace(/, [^,]* to go$/, "");
    const waitText = durationText(error.waitMs);
    return {
      outcome: "failed",
      error: `would have to wait longer than --max-wait, at least ${waitText} more: ${reason}`,
    };
  }
  if (error instanceof PolitelyError) return { outcome: "failed", error: error.message };
  const { code, message } = causeOf(error);
  if (code === REDIRECT || code === TOO_LARGE) return { outcome: "refused", error: message };
  return { outcome: "failed", error: causeText(error) };
}

/** What is behind an error, with its code, in at most 340 characters. */
export function causeText(error: unknown): string {
  const { code, message } = causeOf(error);
  return code === undefined || message.includes(code) ? message : `${message} (${code})`;
}

/** A body that is larger than it may be. It has the code of undici's own, so that nobody asks for it again. */
export function tooLarge(message: string): Error {
  return Object.assign(new Error(message), { code: TOO_LARGE });
}

/** A body that comes so slowly that it might as well not. It has the code of undici's own, so that the site counts as silent. */
export function tooSlow(message: string): Error {
  return Object.assign(new Error(message), { code: TOO_SLOW });
}

/** The platform's words for a network that failed, and why: the limiter would name a cause by its code alone. */
export function unreachable(trouble: string): Error {
  return new TypeError(`${UNREACHABLE}${trouble}`);
}

function verdictOfRobots(reason: string): Verdict {
  // When it is asked for again matters to those who go on.
  const [, trouble] = /^it could not be had \((.*)\), and is asked for again /s.exec(reason) ?? [];
  if (trouble !== undefined) {
    const words = trouble.startsWith(UNREACHABLE) ? trouble.slice(UNREACHABLE.length) : trouble;
    return { outcome: "failed", error: `robots.txt could not be had: ${words}` };
  }
  return { outcome: "refused", error: `robots.txt: ${reason}` };
}

const DISK_CODES = ["ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO", "EACCES", "EPERM", "ENOTDIR", "ENOENT"];

/** What failed and what to do, when it was this machine that failed: no request will do better. Without a full stop. */
export function machineFailure(error: unknown): string | undefined {
  return chainOf(error).map(ownFailure).find(Boolean);
}

function ownFailure(error: unknown): string | undefined {
  const { code, syscall, message } = Object(error) as { code?: unknown; syscall?: unknown; message?: unknown };
  if (typeof code !== "string") return undefined;
  const said = typeof message === "string" && message !== "" ? message : code;
  // Connections count as open files, too.
  if (code === "EMFILE") return `too many files are open: ${said}. Raise \`ulimit -n\` or lower --concurrency first`;
  if (code === "ENFILE") {
    return `too many files are open on this machine: ${said}. Lower --concurrency or end other programs first`;
  }
  if (/^SQLITE_(FULL|IOERR|READONLY|CORRUPT|CANTOPEN)/.test(code)) return unwritable(`${said} (${code})`);
  const isOfFile = typeof syscall === "string" && !/connect|getaddrinfo|read/.test(syscall);
  return isOfFile && DISK_CODES.includes(code) ? unwritable(said) : undefined;
}

function unwritable(said: string): string {
  return `the disk cannot be written: ${said}. Make room first`;
}

/** An error and what is behind it, as far as that says more. */
function chainOf(error: unknown): unknown[] {
  const chain = [error];
  for (let depth = 0; depth < 8; depth++) {
    const { cause, code } = Object(chain.at(-1)) as { cause?: unknown; code?: unknown };
    // What is behind a redirect to nowhere says less than the redirect.
    if (cause === undefined || cause === null || code === REDIRECT) break;
    chain.push(cause);
  }
  return chain;
}

function causeOf(error: unknown): { readonly code: string | undefined; readonly message: string } {
  const current = chainOf(error).at(-1);
  const { code, message } = Object(current) as { code?: unknown; message?: unknown };
  const text = typeof message === "string" && message !== "" ? message : String(current);
  return { code: typeof code === "string" ? code : undefined, message: text.slice(0, 300) };
}
