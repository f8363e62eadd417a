import type { NodeHttp } from "../node/agents.js";

/** The modules of Node that are called here. They are looked up at run time, so that the library needs no types of Node. */
interface Modules {
  readonly "node:http": NodeHttp;
  readonly "node:fs": {
    readFileSync(path: string, encoding: "utf8"): string;
    writeSync(descriptor: number, text: string): unknown;
  };
  readonly "node:worker_threads": { readonly isMainThread: boolean; readonly threadId: number };
  readonly "node:diagnostics_channel": {
    subscribe(channel: string, listener: (message: unknown) => void): void;
  };
}

/** The part of Node's `process` that is called here. */
export interface NodeProcess {
  readonly env: Readonly<Record<string, string | undefined>>;
  exit(code: number): never;
  once(event: "exit", listener: () => void): unknown;
  getBuiltinModule<Name extends keyof Modules>(name: Name): Modules[Name];
}

/** Finds Node. Throws `TypeError` elsewhere, and in a Node before 20.16. */
export function nodeProcess(): NodeProcess {
  const { process } = globalThis as unknown as { readonly process?: NodeProcess };
  if (typeof process?.getBuiltinModule === "function") return process;
  throw new TypeError("politely/register needs Node 20.19 or later. Elsewhere, use polite.fetch.");
}
