import type { Contender } from "./contenders.mjs";

/** One number that a child reports. Lower is better unless a goal says otherwise. */
export interface Metric {
  readonly key: string;
  readonly title: string;
  readonly digits: number;
}

/**
 * What `of` (default politely) has to reach in `metric`: at most or at least the bound, times the value of `against` if named.
 * `againstRow` compares with the same contender in an earlier row instead.
 */
export interface Goal {
  readonly text: string;
  readonly metric: string;
  readonly of?: string;
  readonly against?: string;
  readonly againstRow?: string;
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** One block of the table: the same work for each contender. */
export interface Row {
  readonly id: string;
  readonly title: string;
  readonly metrics: readonly Metric[];
  readonly contenders: readonly Contender[];
  readonly params: Readonly<Record<string, unknown>>;
  /** What `--quick` changes in `params`. */
  readonly quick?: Readonly<Record<string, unknown>>;
  /** True: `--quick` leaves the row out. */
  readonly isSlow?: boolean;
  readonly rounds: number;
  /** Contenders at work at once; 1 where the processor is what is measured. Default 1. */
  readonly parallel?: number;
  /** A child that takes longer is stopped and reported. Default 60 s. */
  readonly capMs?: number;
  /** False: a quotient of the first metric would say nothing. Default true. */
  readonly hasRatio?: boolean;
  readonly goals: readonly Goal[];
}

/** A file of `measures/`. `run` does the work of one JavaScript contender inside its own process. */
export interface Measure {
  readonly name: string;
  readonly rows: readonly Row[];
  run(rival: Rival, params: Params, options: object): Promise<Record<string, number>>;
}

/** `count` starts per `perMs`, and `burst` of them at once; as a window, `burst` says nothing. */
export interface Limit {
  readonly count: number;
  readonly perMs: number;
  readonly burst: number;
  readonly isWindow?: boolean;
}

/** What measures are given; each reads its own part. Go's program reads the same. */
export interface Params {
  readonly count: number;
  readonly samples: number;
  readonly hosts: number;
  readonly waiters: number;
  readonly cancelHalf?: boolean;
  readonly limit: Limit;
  /** When, in ms, how many calls are made. */
  readonly plan: readonly (readonly [number, number])[];
  readonly keys: number;
  /** Calls on the way at once. */
  readonly callers?: number;
  /** The server writes a log of all changes. */
  readonly isLogged?: boolean;
  readonly seconds: number;
}

/** What a file of `rivals/` exports. It offers only the functions of the measures it takes part in. */
export interface Rival {
  /** One host that never refuses. The call answers whether it was granted. */
  tryOne(options: object): () => boolean;
  tryMany(options: object): (host: string) => boolean;
  awaited(options: object): () => Promise<unknown>;
  /** Two ways to do something on one host that never refuses: by hand, and with a task. */
  tasks(options: object): {
    acquire: () => Promise<{ release(): void }>;
    run: (task: () => void) => Promise<void>;
  };
  /** Starts once on a host, which owes nothing a millisecond later. `meet` answers whether it was granted, `knownCount` how many hosts are remembered. */
  meeting(options: object): { meet: (host: string) => boolean; knownCount: () => number };
  /** The standard fetch, paced with 1,000,000/s and concurrency 64 on 127.0.0.1. */
  fetching(options: object): (url: string) => Promise<Response>;
  /** Makes one start on each host and gives whatever remembers it. */
  hold(hosts: readonly string[], options: object): unknown;
  /** Each call of the answer waits its turn and then runs `onStart` with the instant of its start. */
  paced(
    limit: Limit,
    onStart: (startedAtMs: number) => void,
    onCancel?: () => void,
    options?: object,
  ): (signal?: AbortSignal) => void;
  /** The same for numbered keys, where one limiter holds many. */
  pacedKeys?(limit: Limit, onStart: (startedAtMs: number, key: number) => void, options: object): (key: number) => void;
}
