/** The parts of Node that are called here. They are looked up at run time, so that the library needs no types of Node. */
export interface NodePlatform {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Undefined in the main thread. */
  readonly workerId: number | undefined;
  /** A path from the working directory, made absolute. */
  resolve(path: string): string;
  /** Throws as `fs.readFileSync` does. */
  readText(path: string): string;
  /** Writes a line to stderr at once; a stderr that is gone is let be. */
  say(line: string): void;
  exit(code: number): never;
  onExit(listener: () => void): void;
  /** Calls `listener` for every message of a diagnostics channel. */
  listen(channel: string, listener: (message: unknown) => void): void;
}

interface NodeProcess {
  readonly env: NodePlatform["env"];
  cwd(): string;
  exit(code: number): never;
  once(event: "exit", listener: () => void): unknown;
  getBuiltinModule(name: "node:fs"): {
    readFileSync(path: string, encoding: "utf8"): string;
    writeSync(descriptor: number, text: string): unknown;
  };
  getBuiltinModule(name: "node:path"): { resolve(...parts: string[]): string };
  getBuiltinModule(name: "node:worker_threads"): { readonly isMainThread: boolean; readonly threadId: number };
  getBuiltinModule(name: "node:diagnostics_channel"): {
    subscribe(channel: string, listener: (message: unknown) => void): void;
  };
}

const STDERR = 2;

/** Finds Node. Throws `TypeError` elsewhere, and in a Node before 20.16. */
export function nodePlatform(): NodePlatform {
  const { process } = globalThis as unknown as { readonly process?: NodeProcess };
  if (typeof process?.getBuiltinModule !== "function") {
    throw new TypeError("politely/register needs Node 20.19 or later. Elsewhere, use polite.fetch.");
  }
  const fs = process.getBuiltinModule("node:fs");
  const path = process.getBuiltinModule("node:path");
  const { isMainThread, threadId } = process.getBuiltinModule("node:worker_threads");
  const diagnostics = process.getBuiltinModule("node:diagnostics_channel");

  return {
    env: process.env,
    workerId: isMainThread ? undefined : threadId,
    resolve: (name) => path.resolve(process.cwd(), name),
    readText: (file) => fs.readFileSync(file, "utf8"),
    say(line) {
      try {
        // Not process.stderr, which in a worker is too late when the thread ends.
        fs.writeSync(STDERR, `${line}\n`);
      } catch {
        // Nobody is there to read it.
      }
    },
    exit: (code) => process.exit(code),
    onExit: (listener) => void process.once("exit", listener),
    listen: (channel, listener) => diagnostics.subscribe(channel, listener),
  };
}
