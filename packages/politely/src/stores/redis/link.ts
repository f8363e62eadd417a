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
  async run(name: Name, keys: string[], args: string[]): Promise<unknown> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const silence = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(silenceError(this.timeoutMs)), this.timeoutMs);
    });
    try {
      return await Promise.race([this.#ask(name, keys, args), silence]);
    } finally {
      clearTimeout(timer);
    }
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
      if (loading === undefined) {
        const own = this.runner.load(script, keys, args).finally(() => this.#loads.delete(script));
        this.#loads.set(script, own);
        return own;
      }
      await loading.catch(() => undefined);
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
