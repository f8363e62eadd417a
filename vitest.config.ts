import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["packages/*/test/**/*.test.ts"],
    // Nothing sleeps, but a property plays hours of virtual time many times over.
    testTimeout: 60_000,
    // Many tests wait for servers and processes: a core is not busy with one of them.
    maxWorkers: "100%",
    coverage: { include: ["packages/*/src/**"], reporter: ["text-summary", "html"] },
  },
});
