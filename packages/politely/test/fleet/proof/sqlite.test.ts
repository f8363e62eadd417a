import { sqlitePlace } from "./places.js";
import { proveFleet } from "./proveFleet.js";

proveFleet("a SQLite file", sqlitePlace);
