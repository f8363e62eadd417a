import { redisClusterPlace } from "./places.js";
import { proveFleet } from "./proveFleet.js";

proveFleet("a Redis Cluster", redisClusterPlace);
