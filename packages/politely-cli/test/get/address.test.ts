import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { UsageError } from "../../src/errors.js";
import { openStore, shownAddress } from "../../src/stores/openStore.js";
import { Place } from "./place.js";

it("shows addresses without anything that may be secret", () => {
  const cases = {
    "redis://10.0.0.5": "redis://10.0.0.5",
    "redis://user:SECRET@host:6379/1": "redis://…@host:6379/1",
    "redis://user:SEC/RET@host": "redis://…@host",
    "postgres://u:a@b:SECRET@host/db": "postgres://…@host/db",
    "redis://host/0?password=SECRET": "redis://host/0?…",
    "redis://u:SECRET@host?db=SECRET": "redis://…@host?…",
    "redis://host?password=SEC@SECRET": "redis://…",
    "redis://u:SEC?SECRET@host": "redis://…",
    "postgres://host#SECRET": "postgres://host?…",
    "user:SECRET@localhost:6379": "…@localhost:6379",
    "dynamodb:table?region=eu": "dynamodb:table?…",
    "./folder@2/shared.db": "./folder@2/shared.db",
    "C:\\lists\\shared.db": "C:\\lists\\shared.db",
  };
  for (const [address, shown] of Object.entries(cases)) expect(shownAddress(address)).toBe(shown);
});

it("takes a host and a port for a forgotten scheme, and makes no file of that name", async () => {
  using place = new Place();
  const kinds = ["redis", "postgres", "sqlite"] as const;
  const cases = {
    "localhost:6379": "Write redis://localhost:6379, or ./localhost:6379 for a file of that name.",
    "db.example.org:5432": "Write postgres://db.example.org:5432, or",
    "db:5432/pages": "Write postgres://db:5432/pages, or",
    "[::1]:6379": "Write redis://[::1]:6379, or",
    "redis:10.0.0.5": "Write redis://10.0.0.5, or ./redis:10.0.0.5 for a file of that name.",
    "rediss:/10.0.0.5": "Write rediss://10.0.0.5, or",
    "PostgreSQL:pages": "Write postgresql://pages, or",
    "redis:me:SECRET@host": "got …@host. Write redis://…@host, or",
    "me:SECRET@10.0.0.5:6379": "got …@10.0.0.5:6379. Write redis://…@10.0.0.5:6379, or",
  };
  for (const [address, hint] of Object.entries(cases)) {
    const opening = openStore(address, { cwd: place.path, kinds });
    await expect(opening).rejects.toThrow(UsageError);
    await expect(opening).rejects.toThrow(hint);
    expect(existsSync(join(place.path, address))).toBe(false);
  }
  const opened = await openStore("./localhost:6379", { cwd: place.path, kinds });
  await opened.close();
  expect(existsSync(join(place.path, "localhost:6379"))).toBe(true);
});

it("says what is wrong with a file that cannot be made, as the system does, and refuses an empty name", async () => {
  using place = new Place();
  const kinds = ["redis", "sqlite"] as const;
  const missing = openStore("nowhere/shared.db", { cwd: place.path, kinds });
  await expect(missing).rejects.toThrow(/ENOENT: no such file or directory, open '.*nowhere\/shared\.db'/);
  const empty = openStore("", { cwd: place.path, kinds });
  await expect(empty).rejects.toThrow(UsageError);
  await expect(empty).rejects.toThrow('--share takes redis://… or a file; got ""');
});

it("says of a folder that it is one", async () => {
  using place = new Place();
  const opening = openStore(".", { cwd: place.path, kinds: ["sqlite"] });
  await expect(opening).rejects.toThrow(`${place.path} is a folder; name a file in it`);
});
