import { describe } from "vitest";
import { groundOf } from "./ground.js";
import { sqlitePlace } from "./places.js";
import { proveFleet } from "./proveFleet.js";

// Side by side: most of their time is waiting.
describe.concurrent("processes that share a SQLite file", () => {
  proveFleet("SQLite", groundOf(sqlitePlace));
});
