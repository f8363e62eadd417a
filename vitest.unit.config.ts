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
      // Properties over hours of virtual time.
      "packages/politely/test/laws/**",
    ],
    // One module graph for all files: the library is loaded once.
    isolate: false,
    pool: "threads",
    testTimeout: 60_000,
    env: { FC_TIMES: "0.2" },
  },
});
