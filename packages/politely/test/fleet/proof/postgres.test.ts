import { describe } from "vitest";
import { groundOf } from "./ground.js";
import { postgresPlace } from "./places.js";
import { proveFaults, proveFleet } from "./proveFleet.js";
import { restartProof } from "./restartProof.js";

// Side by side, since most of their time is waiting, and the longest first.
describe.concurrent("processes that share PostgreSQL", () => {
  const ground = groundOf(postgresPlace);
  proveFaults("PostgreSQL", ground);
  proveFleet("PostgreSQL", ground);
});

describe.concurrent("processes whose PostgreSQL restarts", () => {
  restartProof(groundOf(postgresPlace));
});
