import { open } from "node:fs/promises";
import { resolve } from "node:path";
import { UsageError } from "../errors.js";

/** The largest policy file that is read. One of 100,000 hosts is about half as large. */
export const maxPolicyBytes = 10_000_000;

/**
 * Reads a text file in UTF-8, without its byte order mark. Pipes serve too.
 *
 * Throws a `UsageError` for a file that is missing, a directory, larger than `maxPolicyBytes`, or not text.
 * Of a file that is too large no more than the bound is read.
 */
export async function readText(path: string, cwd: string): Promise<string> {
  if (path === "") throw new UsageError("the name of the policy file is empty; give the path of a JSON or YAML file");
  const bytes = await readBytes(path, resolve(cwd, path));
  const isUtf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  if (isUtf16) throw new UsageError(`${path} is UTF-16 text; save it as UTF-8`);
  const text = decode(bytes);
  if (text === undefined || text.includes("\0")) {
    throw new UsageError(`${path} is not text in UTF-8; a policy file is JSON or YAML`);
  }
  return text;
}

/** Tells whether an error of the file system says that there is no such file. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR";
}

/** Says why the file system refused, in words. */
export function whyNot(error: unknown): string {
  switch (codeOf(error)) {
    case "ENOENT":
    case "ENOTDIR":
      return "there is no such file";
    case "EISDIR":
      return "it is a directory";
    case "EACCES":
    case "EPERM":
      return "permission denied";
    default:
      return error instanceof Error ? error.message : String(error);
  }
}

/** A file that cannot be read. Exit code 2, as for other wrong usage. */
export class UnreadableError extends UsageError {
  constructor(
    path: string,
    /** There is no such file. */
    readonly isMissing: boolean,
    why: string,
  ) {
    super(`${path} cannot be read: ${why}`);
  }
}

async function readBytes(path: string, fullPath: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let total = 0;
  try {
    await using file = await open(fullPath);
    for await (const chunk of file.createReadStream({ autoClose: false, end: maxPolicyBytes })) {
      chunks.push(chunk as Buffer);
      total += (chunk as Buffer).length;
    }
  } catch (error) {
    throw new UnreadableError(path, isMissing(error), whyNot(error));
  }
  if (total > maxPolicyBytes) {
    throw new UsageError(`${path} is larger than ${maxPolicyBytes / 1_000_000} MB, which no policy file needs to be`);
  }
  return Buffer.concat(chunks);
}

function decode(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
