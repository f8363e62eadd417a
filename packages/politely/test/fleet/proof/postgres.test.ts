import { postgresPlace } from "./places.js";
import { proveFleet } from "./proveFleet.js";

proveFleet("PostgreSQL", postgresPlace);
