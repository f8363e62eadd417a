import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["packages/*/test/**/*.test.ts"],
    // Nothing sleeps, but a property plays hours of virtual time many times over.
    testTimeout: 60_000,
    coverage: { include: ["packages/*/src/**"], reporter: ["text-summary", "html"] },
  },
});
