import { addColumn, inTransaction, type SqliteDatabase, type SqliteStatement } from "./sqlite.js";

/** What is known of a page that was fetched before. */
export interface KnownPage {
  readonly url: string;
  /** Where it came from, which may be behind redirects; null in folders of earlier versions. */
  readonly finalUrl: string | null;
  readonly etag: string | null;
  readonly lastModified: string | null;
  readonly file: string;
  readonly sha256: string;
  readonly bytes: number;
}

/** What a folder remembers beside its list: how much of its index is accounted for, and what the pages were that it holds. */
export class Journal {
  readonly #readMeta: SqliteStatement;
  readonly #writeMeta: SqliteStatement;
  readonly #readPages: SqliteStatement;
  readonly #writePages: SqliteStatement;

  constructor(readonly database: SqliteDatabase) {
    database.exec(`
      CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS pages (
        url TEXT PRIMARY KEY, final_url TEXT, etag TEXT, last_modified TEXT, file TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
    `);
    addColumn(database, "pages", { name: "final_url", type: "TEXT" });
    const field = (name: string): string => `json_extract(value, '$.${name}')`;
    this.#readMeta = database.prepare("SELECT value FROM meta WHERE name = ?");
    this.#writeMeta = database.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)");
    this.#readPages = database.prepare(
      `SELECT url, final_url AS finalUrl, etag, last_modified AS lastModified, file, sha256, bytes FROM pages
       WHERE url IN (SELECT value FROM json_each(?))`,
    );
    this.#writePages = database.prepare(
      `INSERT OR REPLACE INTO pages (url, final_url, etag, last_modified, file, sha256, bytes)
       SELECT ${["url", "finalUrl", "etag", "lastModified", "file", "sha256", "bytes"].map(field).join(", ")} FROM json_each(?)`,
    );
  }

  /** How much of the index was accounted for when somebody last wrote it down, in bytes. */
  get indexBytes(): number {
    const { value } = (this.#readMeta.get("indexBytes") ?? { value: 0 }) as { readonly value: number };
    return value;
  }

  /** What has to be added to the store's instants to have the wall clock's, in milliseconds; undefined before anybody has measured it. */
  get storeToWallMs(): number | undefined {
    const row = this.#readMeta.get("storeToWallUs") as { readonly value: number } | undefined;
    return row === undefined ? undefined : row.value / 1000;
  }

  /** Keeps it for the runs to come, to the microsecond. */
  set storeToWallMs(ms: number) {
    this.#writeMeta.run("storeToWallUs", Math.round(ms * 1000));
  }

  /** Writes down how much of the index is accounted for, and what the pages are that came with it. */
  commit(indexBytes: number, pages: readonly KnownPage[]): void {
    inTransaction(this.database, () => {
      if (pages.length > 0) this.#writePages.run(JSON.stringify(pages));
      this.#writeMeta.run("indexBytes", indexBytes);
    });
  }

  /** Those of the URLs whose pages are known. At most 1,000 URLs. */
  pages(urls: readonly string[]): ReadonlyMap<string, KnownPage> {
    const rows = this.#readPages.all(JSON.stringify(urls)) as KnownPage[];
    return new Map(rows.map((row) => [row.url, row]));
  }
}
