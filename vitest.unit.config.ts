import { defineConfig } from "vitest/config";

/** Everyday tests: no server, no other process, virtual time. `npm test` runs everything. */
export default defineConfig({
  test: {
    include: ["packages/*/test/**/*.test.ts"],
    exclude: [
      "**/node_modules/**",
      // Real servers and real processes.
      "packages/politely/test/servers/**",
      "packages/politely/test/fleet/**",
      "packages/politely/test/stores/**",
      "packages/politely/test/http/**",
      "packages/politely-cli/**",
      // Properties over hours of virtual time.
      "packages/politely/test/laws/**",
      "packages/politely/test/engine/adaptive/scenarios.test.ts",
      // Reads the whole source with the compiler, as lint does.
      "packages/politely/test/architecture.test.ts",
      // Compiles the library and runs it in a process of its own.
      "packages/politely/test/architecture/**",
      // Real sockets.
      "packages/politely/test/testing/virtualOriginListen.test.ts",
      // Real connections; hours of starts and outages in virtual time.
      "packages/politely/test/shared/{refusedRedis,forgiven,outageTold,outageParts,batch,lostReplies,turns}.test.ts",
      // Builds the library anew for each fault.
      "packages/politely/test/simulation/mutants.test.ts",
      // Thousands of hosts in every exporter.
      "packages/politely/test/observe/exporters/cardinality.test.ts",
      // Asks promtool.
      "packages/politely/test/observe/exporters/promtool.test.ts",
      // Real timers, millions of rows, a hundred thousand waiters.
      "packages/politely/test/engine/systemClock*.test.ts",
      "packages/politely/test/engine/slab.test.ts",
      "packages/politely/test/cases/queue.test.ts",
      "packages/politely/test/cases/turns.test.ts",
    ],
    // One module graph for all files: the library is loaded once.
    isolate: false,
    pool: "threads",
    maxWorkers: "100%",
    // What was compiled the time before is not compiled again.
    experimental: { fsModuleCache: true },
    testTimeout: 60_000,
    setupFiles: ["./packages/politely/test/withSharing.ts"],
    env: { FC_TIMES: "0.1", SIM_SEEDS: "200" },
  },
});
