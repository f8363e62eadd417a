import { temporaryFile } from "../sqlite/temporaryFile.js";
import { leaseFleet } from "./leaseFleet.js";

leaseFleet("SQLite", async () => {
  const file = temporaryFile();
  return { kind: "sqlite", address: { path: file.path }, close: async () => file[Symbol.dispose]() };
});
