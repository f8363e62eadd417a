import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { limit, politely } from "../../src/politely.js";
import { Fleet } from "./fleet.js";

const make = (options: object) => () => politely({ default: { rate: "1/s" } }, options as never);

describe("options of a limiter with a store", () => {
  it("are all named where one is wrong", () => {
    const { store } = new Fleet();
    for (const options of [{ store, outtage: "open" }, { storage: store }]) {
      for (const name of ["store", "name", "outage", "batch"]) {
        expect(make(options)).toThrow(new RegExp(`Known: .*\\b${name}\\b`));
      }
    }
  });

  it.each(["outage", "batch", "name"])("say that %s needs a store", (name) => {
    expect(make({ [name]: "open" })).toThrow(`${name} is for limits that are kept in a store`);
  });

  it("say what to write for a client that is no store", () => {
    const client = new Redis({ lazyConnect: true });
    expect(make({ store: client })).toThrow("redisStore(client)");
    expect(make({ store: client })).toThrow("a Redis client");
    client.disconnect();
    expect(make({ store: { evalSha: () => undefined, eval: () => undefined } })).toThrow("redisStore(client)");
    expect(make({ store: { query: () => undefined, connect: () => undefined } })).toThrow("postgresStore(pool)");
    expect(make({ store: { prepare: () => undefined, exec: () => undefined } })).toThrow("sqliteStore(handle)");
    expect(make({ store: { send: () => undefined, destroy: () => undefined } })).toThrow(
      "dynamodbStore(client, { table })",
    );
    expect(make({ store: new SharedArrayBuffer(8) })).toThrow("threadStore(buffer)");
  });

  it.each([
    ["redis://10.0.0.1:6379", "redisStore(new Redis(url))"],
    ["postgres://x/y", "postgresStore("],
    ["limits.db", "sqliteStore("],
    [5, "got 5"],
    [null, "got null"],
    [() => undefined, "got a function"],
    [{}, "no method transact"],
  ])("say what to write for %s", (store, words) => {
    expect(make({ store })).toThrow("store must be a store");
    expect(make({ store })).toThrow(words);
  });

  it("do not repeat the password of a URL", () => {
    expect(make({ store: "redis://me:secret@10.0.0.1" })).not.toThrow("secret");
  });

  it("say that limit needs a name, before anything else of the store is looked at", () => {
    const { store } = new Fleet();
    expect(() => limit({ rate: "1/s" }, { store })).toThrow("limit with a store needs a name");
    expect(() => limit({ rate: "1/s" }, { store, name: "" })).toThrow('Write { store, name: "mail" }');
  });
});
