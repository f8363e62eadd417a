/**
 * Creates the tables of queues in PostgreSQL. Two processes may do so at once: the lock lets one of them wait.
 *
 * A list has a row in `politely_get_rounds` while a round that somebody asked for has something left. URLs are found by their hash, since an index takes no more than 2,700 bytes.
 */
export const postgresTables = `
  BEGIN;
  SELECT pg_advisory_xact_lock(7049316);
  CREATE TABLE IF NOT EXISTS politely_get_urls (
    id bigserial PRIMARY KEY, list text NOT NULL, hash bytea NOT NULL, url text NOT NULL, key text NOT NULL,
    state smallint NOT NULL DEFAULT 0, worker text, UNIQUE (list, hash));
  CREATE INDEX IF NOT EXISTS politely_get_urls_waiting ON politely_get_urls (list, key, id) WHERE state = 0;
  CREATE INDEX IF NOT EXISTS politely_get_urls_out ON politely_get_urls (list, worker) WHERE state = 1;
  CREATE TABLE IF NOT EXISTS politely_get_keys (
    list text NOT NULL, key text NOT NULL, total bigint NOT NULL, waiting bigint NOT NULL,
    fetched bigint NOT NULL, refused bigint NOT NULL, failed bigint NOT NULL, PRIMARY KEY (list, key));
  CREATE TABLE IF NOT EXISTS politely_get_workers (
    list text NOT NULL, worker text NOT NULL, lease_until timestamptz NOT NULL, PRIMARY KEY (list, worker));
  CREATE TABLE IF NOT EXISTS politely_get_rounds (list text PRIMARY KEY);
  COMMIT;
`;
