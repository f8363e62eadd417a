import { StoreError } from "../../errors.js";

/** What a script answers: a line of text, or a list of whole numbers, texts and further lists. */
export type Reply = string | readonly unknown[];

/** Makes sure that an answer has one of the two forms. Clients that give bytes instead of text are understood. */
export function replyOf(answer: unknown): Reply {
  if (typeof answer === "string" || Array.isArray(answer)) return answer;
  if (answer instanceof Uint8Array) return new TextDecoder().decode(answer);
  throw unexpected(answer);
}

/**
 * A number of a list. Clients may be set to give numbers as text. Past the end: `missing`, or a `StoreError` without that.
 *
 * Both clients read 2^53 - 1, which stands for "always", as one more.
 */
export function numberAt(reply: Reply, index: number, missing?: number): number {
  const value: unknown = reply[index];
  const number = typeof value === "number" ? value : value === undefined ? missing : Number(value);
  if (number === undefined || Number.isNaN(number) || typeof reply === "string") throw unexpected(reply);
  return Math.min(number, Number.MAX_SAFE_INTEGER);
}

/** A text of a list. */
export function textAt(reply: Reply, index: number): string {
  const value: unknown = reply[index];
  if (typeof value === "string") return value;
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  throw unexpected(reply);
}

/** A list inside a list. */
export function listAt(reply: Reply, index: number): readonly unknown[] {
  const value: unknown = reply[index];
  if (Array.isArray(value)) return value;
  throw unexpected(reply);
}

function unexpected(answer: unknown): StoreError {
  const text = JSON.stringify(answer) ?? typeof answer;
  return new StoreError(
    `Redis answered something that the script never does: ${text.slice(0, 200)}. Give the store a client whose replies nobody changes.`,
    { isLasting: true },
  );
}
