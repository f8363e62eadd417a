import type { Script, ScriptRunner } from "./client.js";
import { silenceError } from "./errors.js";
import type { ScriptTexts } from "./scripts.js";

type Name = keyof ScriptTexts;

/** Runs scripts by their digest, and sends the text of one that the server does not have. */
export class RedisLink {
  #scripts: Readonly<Record<Name, Script>> | undefined;
  /** Scripts whose text is on its way. */
  readonly #loads = new Map<Script, Promise<unknown>>();

  constructor(
    readonly runner: ScriptRunner,
    readonly texts: ScriptTexts,
    readonly timeoutMs: number,
  ) {}

  /** Runs a script. Rejects with what the client throws, or with `StoreError` when there is no answer in time. */
  run(name: Name, keys: string[], args: string[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(silenceError(this.timeoutMs)), this.timeoutMs);
      this.#ask(name, keys, args).then(
        (reply) => {
          clearTimeout(timer);
          resolve(reply);
        },
        (error: unknown) => {
          clearTimeout(timer);
          reject(error);
        },
      );
    });
  }

  async #ask(name: Name, keys: string[], args: string[]): Promise<unknown> {
    this.#scripts ??= await digested(this.texts);
    const script = this.#scripts[name];
    for (;;) {
      try {
        return await this.runner.run(script, keys, args);
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      }
      // Only one question takes the text along; the others wait for it and try again: a cluster may need it at several nodes.
      const loading = this.#loads.get(script);
      if (loading === undefined) return this.#load(script, keys, args);
      await loading.catch(() => undefined);
    }
  }

  async #load(script: Script, keys: string[], args: string[]): Promise<unknown> {
    const loading = this.runner.load(script, keys, args);
    this.#loads.set(script, loading);
    try {
      return await loading;
    } finally {
      this.#loads.delete(script);
    }
  }
}

async function digested(texts: ScriptTexts): Promise<Record<Name, Script>> {
  const entries = Object.entries(texts).map(async ([name, text]) => [name, { text, sha: await shaOf(text) }] as const);
  return Object.fromEntries(await Promise.all(entries)) as Record<Name, Script>;
}

async function shaOf(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-1", new TextEncoder().encode(text)));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
