import type { Operation } from "../../shared/operation.js";
import type { Script, ScriptRunner } from "./client.js";
import { redisError, silenceError } from "./errors.js";
import { Patience, Wait } from "./patience.js";
import { type Reply, replyOf } from "./reply.js";
import type { ScriptName, ScriptTexts } from "./scripts.js";

/** One question to Redis. */
export interface Question {
  readonly operation: Operation;
  /** As the caller named them. */
  readonly keys: readonly string[];
  /** The keys of Redis. */
  readonly names: string[];
  readonly args: string[];
}

/** What a link is made of. */
export interface LinkParts {
  readonly runner: ScriptRunner;
  readonly texts: ScriptTexts;
  readonly timeoutMs: number;
  /** Reads the reply to an operation. May throw. */
  read(operation: Operation, reply: Reply, keyCount: number): object;
}

type Scripts = Readonly<Record<ScriptName, Script>>;

/** Takes that are sent together, at most: what they keep the server busy for is well below a millisecond. */
const TOGETHER_MOST = 32;
/** How long takes are sent one by one after one could not be granted in company. */
const ALONE_MS = 100;

/** Puts questions to Redis: runs scripts by their digest, and sends a script anew when the server has forgotten it. */
export class RedisLink {
  readonly #parts: LinkParts;
  readonly #patience: Patience;
  #scripts: Scripts | undefined;
  /** Scripts that are being sent anew. */
  readonly #loads = new Map<Script, Promise<unknown>>();
  /** Takes of this turn, and their words. */
  #gathered: Errand[] = [];
  #words = "";
  #aloneUntilMs = 0;

  constructor(parts: LinkParts) {
    this.#parts = parts;
    this.#patience = new Patience(parts.timeoutMs);
  }

  /**
   * Asks. Rejects with `StoreError` when it fails, or when there is no answer in time.
   *
   * Those with the same `words` that ask in the same turn of the event loop are sent together; undefined: alone.
   */
  ask(question: Question, words?: string): Promise<object> {
    return new Promise((resolve, reject) => {
      const errand = new Errand(this.#parts, this.#patience, question, resolve, reject);
      this.#patience.begin(errand);
      if (words === undefined || performance.now() < this.#aloneUntilMs) this.#send(errand);
      else this.#gather(errand, words);
    });
  }

  #send(errand: Errand): void {
    const { question } = errand;
    const script = this.#scripts?.[question.operation.kind];
    if (script === undefined) {
      this.#runFirst(question).then(
        (answer) => errand.hear(answer),
        (error: unknown) => errand.fail(error),
      );
      return;
    }
    try {
      this.#parts.runner.run(script, question.names, question.args).then(
        (answer) => errand.hear(answer),
        (error: unknown) => this.#failed(error, script, errand),
      );
    } catch (error) {
      errand.fail(error);
    }
  }

  #gather(errand: Errand, words: string): void {
    if (this.#gathered.length > 0 && (this.#words !== words || this.#gathered.length >= TOGETHER_MOST))
      this.#sendGathered();
    this.#words = words;
    this.#gathered.push(errand);
    if (this.#gathered.length === 1) queueMicrotask(() => this.#sendGathered());
  }

  #sendGathered(): void {
    const errands = this.#gathered;
    const script = this.#scripts?.takes;
    this.#gathered = [];
    if (errands.length < 2 || script === undefined) {
      for (const errand of errands) this.#send(errand);
      return;
    }
    const names: string[] = [];
    const args = [this.#words];
    for (const { question } of errands) {
      names.push(...question.names);
      args.push(question.args[0]);
    }
    this.#runTogether(script, names, args).then(
      (answer) => this.#hearTogether(errands, answer),
      (error: unknown) => {
        for (const errand of errands) errand.fail(error);
      },
    );
  }

  async #runTogether(script: Script, names: string[], args: string[]): Promise<unknown> {
    const { runner } = this.#parts;
    try {
      return await runner.run(script, names, args);
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      return runner.load(script, names, args);
    }
  }

  /** Who could not be granted in company was not asked for at all, and asks alone. */
  #hearTogether(errands: readonly Errand[], answer: unknown): void {
    for (const [index, errand] of errands.entries()) {
      const reply: unknown = Array.isArray(answer) ? answer[index] : undefined;
      if (reply !== null && reply !== undefined && reply !== false) {
        errand.hear(reply);
        continue;
      }
      this.#aloneUntilMs = performance.now() + ALONE_MS;
      this.#send(errand);
    }
  }

  #failed(error: unknown, script: Script, errand: Errand): void {
    if (!isUnknownScript(error)) errand.fail(error);
    else {
      this.#runAnew(script, errand.question).then(
        (answer) => errand.hear(answer),
        (cause: unknown) => errand.fail(cause),
      );
    }
  }

  async #runFirst(question: Question): Promise<unknown> {
    this.#scripts ??= await digested(this.#parts.texts);
    const script = this.#scripts[question.operation.kind];
    return this.#runOrLoad(script, question, () => this.#runAnew(script, question));
  }

  async #runOrLoad(script: Script, { names, args }: Question, load: () => Promise<unknown>): Promise<unknown> {
    try {
      return await this.#parts.runner.run(script, names, args);
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      return load();
    }
  }

  /** Only one question takes the text along; the others wait for it, and then find the script there: on this server, or each takes it to another. */
  async #runAnew(script: Script, question: Question): Promise<unknown> {
    const load = (): Promise<unknown> => this.#parts.runner.load(script, question.names, question.args);
    const loading = this.#loads.get(script);
    if (loading !== undefined) {
      await loading.catch(() => undefined);
      return this.#runOrLoad(script, question, load);
    }
    const begun = load();
    this.#loads.set(script, begun);
    try {
      return await begun;
    } finally {
      this.#loads.delete(script);
    }
  }
}

/** A question on its way, and whoever waits for the answer. */
class Errand extends Wait {
  #isLate = false;

  constructor(
    readonly parts: LinkParts,
    readonly patience: Patience,
    readonly question: Question,
    readonly resolve: (reply: object) => void,
    readonly reject: (reason: unknown) => void,
  ) {
    super();
  }

  hear(answer: unknown): void {
    if (!this.#isLate) this.patience.end(this);
    const { operation, keys } = this.question;
    try {
      this.resolve(this.parts.read(operation, replyOf(answer), keys.length));
    } catch (error) {
      this.reject(error);
    }
  }

  fail(error: unknown): void {
    if (!this.#isLate) this.patience.end(this);
    const { keys, names } = this.question;
    this.reject(redisError(error, { keys, names, isClosed: this.parts.runner.isClosed() }));
  }

  override onLate(): void {
    this.#isLate = true;
    this.reject(silenceError(this.parts.timeoutMs));
  }
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

async function digested(texts: ScriptTexts): Promise<Scripts> {
  const entries = Object.entries(texts).map(async ([kind, text]) => [kind, { text, sha: await shaOf(text) }] as const);
  return Object.fromEntries(await Promise.all(entries)) as Record<ScriptName, Script>;
}

async function shaOf(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-1", new TextEncoder().encode(text)));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
