import { StoreError } from "../../errors.js";
import { BEHIND_MOST_US } from "../decide.js";
import type { Part, PlaceTime, Seen, SeenCell, SwapPlace, Swapped } from "../swapCells.js";
import type { Connection, Rows, Statement } from "./client.js";
import { isConflict } from "./errors.js";

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
        name,
        part,
        version: seen.get(name)?.version,
        heard: seen.get(name)?.notes?.length ?? 0,
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
    const versions = new Map(rows?.map(([name, , , , , , version]) => [name, version]));
    const written = parts.map(({ names: [name] }) => versions.get(name) ?? undefined);
    const left = new Map(
      rows?.map(([name, , , , serverUs, notes]) => [String(name), notesIn(notes, Number(serverUs))]),
    );
    const isLater = ([name, , , expiresUs]: Rows[number]): boolean =>
      Number(expiresUs) > (seen.get(String(name))?.expiresUs ?? 0);
    const hasCompany = rows?.some(isLater) !== false;
    return { versions: written, left, seen: rows && this.#found(rows), isFresh: true, hasCompany };
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

/** How many rows `sweep` removes at most. */
const SWEPT_MOST = 500;

/** How many notes may lie at a row. */
const NOTES_MOST = 64;
/** The longest name of a channel, and how it begins: a process hears there whose turn has come. */
export const CHANNEL_MOST = 60;
export const CHANNEL = "politely_";

// The expiry in the index is rounded up to ten minutes, so that most updates do not touch the index, and PostgreSQL can write the new row beside the old one.
const SWEEP_STEP_US = 600_000_000;

/** Microseconds since 1970. Unlike now(), it moves within a transaction. */
const CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
/** The same at the begin of the statement. An index can be searched for what is earlier, which it cannot for a time that moves. */
const BEGIN = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint";

type Statements = ReturnType<typeof statementsFor>;

/** Builds the statements for `table`, a quoted name. `swap` fails when it has to wait longer than `lockMs` for a row. */
export function statementsFor(table: string, lockMs: number) {
  return {
    // `$1` names. One row for each that exists, or one row of nulls: name, version, value, expiry, the server's time, and the notes.
    read: statement(`
SELECT t.key, t.version::text, t.value, t.expires_us::text, ${CLOCK}::text, array_to_json(t.asked)::text
FROM (SELECT 1) AS once LEFT JOIN ${table} AS t ON t.key = ANY ($1::text::text[])`),

    // `$1` names, `$2` their versions (null: there is no such row), `$3` numbers of parts, `$4` values (null: to be left as it is), `$5` expiries, `$6` how many of
    // the notes at each row were carried out, `$7` what is to be noted there if its part is not written, `$8` askers to wake if it is, one a line, and `$9` the time
    // at which all that was worked out. Writes the parts of which all rows are as they were thought to be; none where the server's clock was set back before that time.
    // Gives for each name: name, version, value and expiry as they were, the server's time, and the notes, but for those that were carried out; for those of a part that was written
    // no value, but then the version that its rows have now. An expiry that is later than it was written says that others came too late for this row.
    //
    // A row is locked while this one statement is carried out, in the order of the keys, so that two never wait for each other; it then is as others have left
    // it. A row that is made by two at once fails for one of them. As a subquery the setting is made before the first row is touched, and ends with the
    // statement. The number of the transaction is a version that no row ever had before, a removed one included.
    swap: statement(`
WITH given AS MATERIALIZED (
  SELECT * FROM unnest($1::text::text[], $2::text::bigint[], $3::text::int[], $4::text::text[], $5::text::bigint[], $6::text::int[],
    $7::text::text[], $8::text::text[]) AS g (key, version, part, value, expires_us, heard, note, wake)
), held AS MATERIALIZED (
  SELECT key, version, value, expires_us, asked FROM ${table}
  WHERE key = ANY ((SELECT $1 FROM set_config('lock_timeout', '${lockMs}', true))::text::text[])
  ORDER BY key FOR NO KEY UPDATE
), fit AS MATERIALIZED (
  SELECT part FROM given LEFT JOIN held USING (key) GROUP BY part
  HAVING bool_and(given.version IS NOT DISTINCT FROM held.version) AND $9::text::bigint <= ${CLOCK} + ${BEHIND_MOST_US}
), put AS (
  UPDATE ${table} AS t SET value = g.value, version = txid_current(), expires_us = g.expires_us, sweep_us = ${sweepAt("g")},
    asked = t.asked[g.heard + 1:]
  FROM given AS g JOIN fit USING (part) WHERE t.key = g.key AND t.version = g.version AND g.value IS NOT NULL
), made AS (
  INSERT INTO ${table} (key, value, version, expires_us, sweep_us)
  SELECT g.key, g.value, txid_current(), g.expires_us, ${sweepAt("g")}
  FROM given AS g JOIN fit USING (part) WHERE g.version IS NULL AND g.value IS NOT NULL ORDER BY g.key
), missed AS (
  UPDATE ${table} AS t SET expires_us = t.expires_us + 1,
    asked = CASE WHEN g.note IS NULL OR cardinality(t.asked) >= ${NOTES_MOST} THEN t.asked ELSE t.asked || g.note END
  FROM given AS g WHERE t.key = g.key AND t.version <> g.version AND g.part NOT IN (SELECT part FROM fit)
)
SELECT given.key, held.version::text, CASE WHEN fit.part IS NULL THEN held.value END, held.expires_us::text, ${CLOCK}::text,
  array_to_json(CASE WHEN fit.part IS NULL THEN held.asked ELSE held.asked[given.heard + 1:] END)::text, CASE WHEN fit.part IS NOT NULL THEN txid_current() END::text,
  (SELECT count(pg_notify(left('${CHANNEL}' || split_part(asker, '.', 1), ${CHANNEL_MOST}), asker))
    FROM given JOIN fit USING (part), unnest(string_to_array(given.wake, E'\\n')) AS asker)::text
FROM given LEFT JOIN held USING (key) LEFT JOIN fit USING (part)`),

    // Removes up to `SWEPT_MOST` rows that have expired. Gives one row for each.
    sweep: statement(`
DELETE FROM ${table} WHERE key IN (
  SELECT key FROM ${table} WHERE sweep_us < ${BEGIN} ORDER BY sweep_us LIMIT ${SWEPT_MOST} FOR UPDATE SKIP LOCKED
)
RETURNING ''`),
  };
}

/** The statements that create `table`, and leave one that exists as it is. `index` is the name of its index. All are one transaction when sent together. */
export function creatingText(table: string, index: string): string {
  return `
CREATE TABLE IF NOT EXISTS ${table} (
  key text COLLATE "C" PRIMARY KEY,
  value text NOT NULL,
  version bigint NOT NULL,
  expires_us bigint NOT NULL,
  sweep_us bigint NOT NULL,
  asked text[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX IF NOT EXISTS ${index} ON ${table} (sweep_us);
`.trimStart();
}

/** A list as PostgreSQL writes arrays, `{"a","b",NULL}`: every client can send it as a text. */
function arrayText(items: readonly (string | number | undefined)[]): string {
  const texts = items.map((item) => {
    if (item === undefined) return "NULL";
    return typeof item === "number" ? String(item) : `"${item.replace(/["\\]/g, "\\$&")}"`;
  });
  return `{${texts.join(",")}}`;
}

function sweepAt(row: string): string {
  return `(${row}.expires_us / ${SWEEP_STEP_US} + 1) * ${SWEEP_STEP_US}`;
}

function statement(text: string): Statement {
  // 32 bits of FNV-1a.
  let bits = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) bits = Math.imul(bits ^ text.charCodeAt(index), 0x01000193);
  return { name: `politely_${(bits >>> 0).toString(36)}`, text: text.trim() };
}
