import { describe } from "vitest";
import { groundOf } from "./ground.js";
import { postgresPlace } from "./places.js";
import { proveFaults } from "./proveFaults.js";
import { restartProof } from "./restartProof.js";

proveFaults("PostgreSQL", postgresPlace);

describe("processes whose PostgreSQL restarts", () => {
  restartProof(groundOf(postgresPlace));
});
