import { defineConfig } from "vitest/config";

/** Tests that start servers and processes, or speak through real sockets: one file at a time, so that none waits for another's processor. */
const apart = [
  "packages/politely/test/servers/**/*.test.ts",
  "packages/politely/test/fleet/**/*.test.ts",
  "packages/politely/test/stores/**/*.test.ts",
  "packages/politely/test/http/**/*.test.ts",
  "packages/politely-cli/test/{get,main,view,demo,serve}/**/*.test.ts",
];

export default defineConfig({
  test: {
    // Nothing sleeps, but a property plays hours of virtual time many times over.
    testTimeout: 60_000,
    coverage: { include: ["packages/*/src/**"], reporter: ["text-summary", "html"] },
    projects: [
      {
        extends: true,
        test: {
          name: "here",
          include: ["packages/*/test/**/*.test.ts"],
          exclude: ["**/node_modules/**", ...apart],
          maxWorkers: "100%",
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "apart",
          include: apart,
          maxWorkers: 1,
          // Real time on a machine that others use too: what fails once and not again is said to be flaky, and does not stop a change. A limit that was broken once is broken.
          retry: { count: 1, condition: /^(?!a limit was broken)/ },
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
