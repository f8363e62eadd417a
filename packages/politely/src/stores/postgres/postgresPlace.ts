import { StoreError } from "../../errors.js";
import { BEHIND_MOST_US } from "../decide.js";
import type { Part, PlaceTime, Seen, SeenCell, SwapPlace, Swapped } from "../swapCells.js";
import type { Connection, Rows } from "./client.js";
import { isConflict } from "./errors.js";
import { arrayText, type Statements, SWEPT_MOST } from "./statements.js";

/** After such a silence the server's clock may have moved by a millisecond against this process's: it is read before anything is worked out. */
const SILENCE_MOST_MS = 10_000;
/** Who left a note comes back for the answer within this time. */
const NOTE_FOR_US = 5_000_000;
/** One write of so many also removes expired rows. */
const SWEEP_EVERY = 64;

/** The rows of one table. Nothing is locked between two statements. */
export class PostgresPlace implements SwapPlace {
  readonly together = 256;
  readonly remembered = 10_000;
  readonly isGuessing = false;
  readonly lanes: number;
  #writesToSweep = 0;
  /** The server's clock less this process's, as last heard of, and when that was. */
  #offsetUs = 0;
  #heardMs = Number.NEGATIVE_INFINITY;
  #latestUs = 0;

  constructor(
    private readonly connection: Connection,
    private readonly statements: Statements,
    readonly timeoutMs: number,
    readonly failureOf: (error: unknown) => StoreError,
  ) {
    this.lanes = connection.laneCount;
  }

  /** The server's time: behind by a round trip at most, and never ahead but for a clock that was set back a little. */
  async time(): Promise<PlaceTime | undefined> {
    if (performance.now() - this.#heardMs > SILENCE_MOST_MS) return undefined;
    this.#latestUs = Math.max(this.#latestUs, Math.floor(1000 * performance.now() + this.#offsetUs));
    return { nowUs: this.#latestUs, errorUs: 0 };
  }

  async read(names: readonly string[]): Promise<Seen> {
    return this.#found(await this.connection.run(this.statements.read, [arrayText(names)]));
  }

  async swap(parts: readonly Part[], seen: Seen, nowUs: number): Promise<Swapped> {
    const lines = parts.flatMap(({ names, writes, note, wake }, part) =>
      Array.from(names, (name, index) => ({
        ...{ name, version: seen.get(name)?.version, part, heard: seen.get(name)?.notes?.length ?? 0 },
        ...(index === 0 && { note: note && `${nowUs} ${note}`, wake: wake.join("\n") || undefined }),
        ...writes.get(name),
      })),
    );
    const columns = (["name", "version", "part", "value", "expiresUs", "heard", "note", "wake"] as const).map(
      (column) => arrayText(lines.map((line) => line[column])),
    );
    const failed = (error: unknown): undefined => {
      if (!isConflict(error)) throw error;
    };
    const rows = await this.connection.run(this.statements.swap, [...columns, String(nowUs)]).catch(failed);
    if (--this.#writesToSweep < 0) void this.#sweep();
    const written = new Map(rows?.map(([name, , , , , , version]) => [name, version ?? undefined]));
    const versions = parts.map(({ names: [name] }) => written.get(name));
    const isLater = ([name, , , expiresUs]: Rows[number]): boolean =>
      Number(expiresUs) > (seen.get(String(name))?.expiresUs ?? 0);
    return { versions, seen: rows && this.#found(rows), isFresh: true, hasCompany: rows?.some(isLater) !== false };
  }

  lateError(key: string): StoreError {
    return new StoreError(
      `PostgreSQL did not carry out a change of "${key}" within ${this.timeoutMs} ms. Check the network and how busy the server is.`,
    );
  }

  /** Notes the server's time, and gives the rows that there are. */
  #found(rows: Rows): Seen {
    const serverUs = Number(rows[0][4]);
    // What goes back by less than the core allows stands still.
    if (serverUs < this.#latestUs - BEHIND_MOST_US) this.#latestUs = serverUs;
    this.#heardMs = performance.now();
    this.#offsetUs = serverUs - 1000 * this.#heardMs;
    return new Map(
      rows.flatMap(([name, version, value, expiresUs, , notes]): [string, SeenCell][] =>
        name === null || version === null || value === null
          ? []
          : [[name, { version, value, expiresUs: Number(expiresUs), notes: notesIn(notes, serverUs) }]],
      ),
    );
  }

  /** Removes a few expired rows. What goes wrong here goes wrong with the next change, too, which will say so. */
  async #sweep(): Promise<void> {
    this.#writesToSweep = SWEEP_EVERY;
    const swept = await this.connection.run(this.statements.sweep, []).catch(() => []);
    if (swept.length === SWEPT_MOST) this.#writesToSweep = 0;
  }
}

/** What others left at a row. What they did not come back for soon is over; it is empty, since the row is cleared by their number. */
function notesIn(text: string | null, serverUs: number): string[] {
  return (JSON.parse(text ?? "[]") as string[]).map((note) => {
    const end = note.indexOf(" ");
    return Number(note.slice(0, end)) > serverUs - NOTE_FOR_US ? note.slice(end + 1) : "[]";
  });
}
