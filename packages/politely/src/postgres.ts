import "./withSharing.js";

export type {
  PgClient,
  PgLentClient,
  PgPool,
  PgQuery,
  PostgresJs,
  PostgresJsQuery,
  PostgresJsSession,
} from "./stores/postgres/client.js";
export type { PostgresOptions, PostgresStore } from "./stores/postgres.js";
export { postgresStore, postgresTableSql } from "./stores/postgres.js";
