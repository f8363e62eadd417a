import type { ChangeCells } from "../cells.js";
import { decodeText, encodeText } from "./text.js";

/** Expiries beyond this are cut: a hundred years, which keeps the sum with the time a safe integer. */
const maxTtlUs = 100 * 366 * 86_400 * 1_000_000;

/** One change that waits for its answer. */
export interface Job {
  readonly keys: readonly string[];
  /** Of the rows that hold the keys. */
  readonly names: readonly string[];
  readonly change: ChangeCells<unknown>;
}

/** What came of a job. */
export type Outcome = { readonly answer: unknown } | { readonly error: unknown };

/** A row as it was read. */
export interface Row {
  readonly version: string;
  /** Encoded. */
  readonly value: string;
  readonly expiresUs: number;
}

/** A row as it is to be. */
export interface NewRow {
  /** Encoded. */
  readonly value: string;
  readonly expiresUs: number;
}

/** Jobs that share rows, directly or through others: they are carried out together or not at all. */
export interface Part<SomeJob extends Job> {
  /** Every row that the outcomes depend on. */
  readonly names: Set<string>;
  readonly outcomes: { readonly job: SomeJob; readonly outcome: Outcome }[];
  readonly writes: Map<string, NewRow>;
}

/**
 * Carries out jobs on rows that were read together, one after the other: each sees what those before it wrote.
 *
 * A job that throws changes nothing, and its error is its outcome.
 */
export function play<SomeJob extends Job>(
  jobs: readonly SomeJob[],
  rows: ReadonlyMap<string, Row>,
  nowUs: number,
): Part<SomeJob>[] {
  const partOf = new Map<string, Part<SomeJob>>();
  const parts = new Set<Part<SomeJob>>();
  const values = new Map<string, string | undefined>();
  for (const job of jobs) {
    const part = joined(job.names, partOf, parts);
    part.outcomes.push({ job, outcome: carryOut(job, part, { rows, values, nowUs }) });
  }
  return [...parts];
}

interface Scene {
  readonly rows: ReadonlyMap<string, Row>;
  /** What was read or written so far, decoded. */
  readonly values: Map<string, string | undefined>;
  readonly nowUs: number;
}

function carryOut<SomeJob extends Job>(job: SomeJob, part: Part<SomeJob>, scene: Scene): Outcome {
  const { rows, values, nowUs } = scene;
  try {
    const before = job.names.map((name, index) => {
      if (!values.has(name)) {
        const row = rows.get(name);
        const isThere = row !== undefined && row.expiresUs > nowUs;
        values.set(name, isThere ? decodeText(row.value, job.keys[index]) : undefined);
      }
      return values.get(name);
    });
    const { writes, answer } = job.change(before, nowUs);
    for (const { index, value, ttlUs } of writes) {
      const name = job.names[index];
      values.set(name, value);
      part.writes.set(name, { value: encodeText(value), expiresUs: nowUs + Math.ceil(Math.min(ttlUs, maxTtlUs)) });
    }
    return { answer };
  } catch (error) {
    return { error };
  }
}

/** The part that has all of `names`; parts that had some of them become one. */
function joined<SomeJob extends Job>(
  names: readonly string[],
  partOf: Map<string, Part<SomeJob>>,
  parts: Set<Part<SomeJob>>,
): Part<SomeJob> {
  const touched = new Set(names.map((name) => partOf.get(name)).filter((part) => part !== undefined));
  // The largest stays, so that a row changes hands a few times at most.
  const [largest, ...others] = [...touched].sort((a, b) => b.names.size - a.names.size);
  const part: Part<SomeJob> = largest ?? { names: new Set(), outcomes: [], writes: new Map() };
  parts.add(part);
  for (const name of [...names, ...others.flatMap((other) => [...other.names])]) {
    part.names.add(name);
    partOf.set(name, part);
  }
  for (const other of others) {
    parts.delete(other);
    part.outcomes.push(...other.outcomes);
    for (const [name, row] of other.writes) part.writes.set(name, row);
  }
  return part;
}
