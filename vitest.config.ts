import { defineConfig } from "vitest/config";

/** Tests that judge how much time something takes, or fill the machine with processes: one file at a time, so that none waits for another's processor. */
const alone = [
  "packages/politely/test/fleet/**/*.test.ts",
  "packages/politely/test/stores/lease/{servers,slowWay,sqlite}.test.ts",
  "packages/politely/test/servers/proof/**/*.test.ts",
  "packages/politely-cli/test/serve/page/smooth.test.ts",
  "examples/tdnet-lambda/test/fleet/**/*.test.ts",
];
/** The others that start servers and processes, or speak through real sockets. */
const real = [
  "packages/politely/test/{stores,http,servers}/**/*.test.ts",
  "packages/politely-cli/test/{demo,get,main,serve,view}/**/*.test.ts",
  "examples/*/test/**/*.test.ts",
];
/** Tests that weigh memory, or search it for garbage: a process of their own each. */
const weighed = [
  "packages/politely/test/{shared/outageMemory,scheduler/slab,sources/source4,http/fetch/oddBodies}.test.ts",
  "packages/politely-cli/test/serve/{badInput,events,proxy/streaming}.test.ts",
];
/** Real time on a machine that others use too: what fails once and not again is said to be flaky, and does not stop a change. A limit that was broken once is broken. */
const retry = { count: 1, condition: /^(?!a limit was broken)/ };

export default defineConfig({
  test: {
    // Nothing sleeps, but a property plays hours of virtual time many times over.
    testTimeout: 60_000,
    setupFiles: ["./packages/politely/test/withSharing.ts"],
    // What was compiled the time before is not compiled again.
    experimental: { fsModuleCache: true },
    coverage: { include: ["packages/*/src/**"], reporter: ["text-summary", "html"] },
    projects: [
      {
        extends: true,
        test: {
          name: "here",
          include: ["packages/*/test/**/*.test.ts"],
          exclude: ["**/node_modules/**", ...real, ...alone, ...weighed],
          // One module graph for all files of a worker: the library is loaded once, and not once for each of two hundred files.
          isolate: false,
          pool: "threads",
          maxWorkers: "100%",
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "real",
          include: real,
          exclude: ["**/node_modules/**", ...alone, ...weighed],
          maxWorkers: 3,
          retry,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: "weighed", include: weighed, maxWorkers: 3, sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        test: {
          name: "alone",
          include: alone,
          globalSetup: ["./packages/politely/test/fleet/bundleLibrary.ts"],
          maxWorkers: 1,
          retry,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
