import { redisPlace } from "./places.js";
import { proveFleet } from "./proveFleet.js";

proveFleet("Redis", () => redisPlace());
