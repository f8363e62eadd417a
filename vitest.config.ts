import { defineConfig } from "vitest/config";

/** Tests whose processes need all of the machine: one file at a time, so that none waits for another's processor. */
const alone = [
  "packages/politely/test/fleet/**/*.test.ts",
  "packages/politely/test/stores/dynamodb*.test.ts",
  "packages/politely/test/stores/{dynamodb,lease}/**/*.test.ts",
  "packages/politely/test/servers/**/*.test.ts",
  "packages/politely-cli/test/{demo,view}/**/*.test.ts",
  "packages/politely-cli/test/serve/page/**/*.test.ts",
  "examples/tdnet-lambda/test/fleet/**/*.test.ts",
];
/** The others that start servers and processes, or speak through real sockets. */
const real = [
  "packages/politely/test/{stores,http}/**/*.test.ts",
  "packages/politely-cli/test/{get,main,serve}/**/*.test.ts",
  "examples/*/test/**/*.test.ts",
];
/** Real time on a machine that others use too: what fails once and not again is said to be flaky, and does not stop a change. A limit that was broken once is broken. */
const retry = { count: 1, condition: /^(?!a limit was broken)/ };

export default defineConfig({
  test: {
    // Nothing sleeps, but a property plays hours of virtual time many times over.
    testTimeout: 60_000,
    setupFiles: ["./packages/politely/test/withSharing.ts"],
    coverage: { include: ["packages/*/src/**"], reporter: ["text-summary", "html"] },
    projects: [
      {
        extends: true,
        test: {
          name: "here",
          include: ["packages/*/test/**/*.test.ts"],
          exclude: ["**/node_modules/**", ...real, ...alone],
          maxWorkers: "100%",
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "real",
          include: real,
          exclude: ["**/node_modules/**", ...alone],
          maxWorkers: 2,
          retry,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: "alone", include: alone, maxWorkers: 1, retry, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
