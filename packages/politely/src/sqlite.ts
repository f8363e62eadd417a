import "./shareLimiter.js";

export type { SqliteHandle, SqliteOptions, SqliteStatement, SqliteStore } from "./stores/sqlite.js";
export { sqliteStore } from "./stores/sqlite.js";
