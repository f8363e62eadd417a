import { describe } from "vitest";
import { groundOf } from "./ground.js";
import { redisPlace } from "./places.js";
import { proveFaults, proveFleet } from "./proveFleet.js";

// Side by side, since most of their time is waiting, and the longest first.
describe.concurrent("processes that share Redis", () => {
  const ground = groundOf(() => redisPlace());
  proveFaults("Redis", ground);
  proveFleet("Redis", ground);
});
