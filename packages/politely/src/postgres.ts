import "./shareLimiter.js";

export type { PgClient, PgQuery, PostgresJs, PostgresJsQuery } from "./stores/postgres/client.js";
export type { PostgresOptions, PostgresStore } from "./stores/postgres.js";
export { postgresStore, postgresTableSql } from "./stores/postgres.js";
