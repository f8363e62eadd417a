/** Says what is wrong with something that is to be a store, and what to write instead; undefined when it is one. */
export function storeProblem(store: unknown): string | undefined {
  if (has(store, "transact")) return undefined;
  return `store must be a store: redisStore(client), postgresStore(pool), dynamodbStore(client, { table }), sqliteStore(handle) or threadStore(buffer); ${got(store)}.`;
}

/** What clients of each kind have, what they are called, and what makes a store of them. */
const CLIENTS: readonly (readonly [readonly string[], string, string])[] = [
  [["evalsha", "eval"], "a Redis client", "redisStore(client)"],
  [["evalSha", "eval"], "a Redis client", "redisStore(client)"],
  [["query", "connect"], "a PostgreSQL client", "postgresStore(pool)"],
  [["prepare", "exec"], "a SQLite handle", "sqliteStore(handle)"],
  [["send", "destroy"], "a client of AWS", "dynamodbStore(client, { table })"],
];

/** Beginnings of URLs, and what to write instead. The rest of a URL may be secret. */
const URLS: readonly (readonly [RegExp, string])[] = [
  [/^(rediss?|valkeys?):/i, "redisStore(new Redis(url)), with Redis from ioredis"],
  [/^postgres(ql)?:/i, "postgresStore(new Pool({ connectionString: url })), with Pool from pg"],
  [/^(file:|.*\.(db|sqlite3?)$)/i, "sqliteStore(path)"],
];

function got(store: unknown): string {
  if (typeof store === "string") {
    const instead = URLS.find(([beginning]) => beginning.test(store))?.[1];
    return instead === undefined ? "got a text" : `got a text. Write { store: ${instead} }`;
  }
  if (typeof store === "function") return "got a function. Call it, and give what it returns";
  if (typeof store !== "object" || store === null) return `got ${String(store)}`;
  if (Object.prototype.toString.call(store) === "[object SharedArrayBuffer]")
    return "got a SharedArrayBuffer. Write { store: threadStore(buffer) }";
  if (store instanceof Promise) return "got a promise. Await it first";
  const client = CLIENTS.find(([methods]) => methods.every((method) => has(store, method)));
  return client === undefined
    ? "got an object that has no method transact"
    : `got ${client[1]}. Write { store: ${client[2]} }`;
}

function has(value: unknown, method: string): boolean {
  if (typeof value !== "object" || value === null) return false;
  return typeof (value as Readonly<Record<string, unknown>>)[method] === "function";
}
