import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Tests that judge how much time something takes, or fill the machine with processes: one file at a time, so that none waits for another's processor. */
const alone = [
  "packages/politely/test/fleet/**/*.test.ts",
  "packages/politely/test/stores/lease/processes.test.ts",
  "packages/politely-cli/test/serve/page/smooth.test.ts",
];
/** Tests that judge time too, but leave more than half of a machine with two cores idle: two files at a time. */
const waiting = [
  "packages/politely/test/stores/lease/slowWay.test.ts",
  "packages/politely/test/servers/proof/**/*.test.ts",
  "examples/tdnet-lambda/test/fleet/**/*.test.ts",
];
/** The others that start servers and processes, or speak through real sockets: of the library, and of what is built on it. */
const library = ["packages/politely/test/{stores,http,servers}/**/*.test.ts"];
const programs = ["packages/politely-cli/test/{demo,get,main,serve,view}/**/*.test.ts", "examples/*/test/**/*.test.ts"];
/** Those of the same folders that need neither sockets nor processes. */
const pure = [
  "packages/politely/test/http/{domains,headers,robots}/**/*.test.ts",
  "packages/politely/test/http/fetch/{identity,listening,tap,retry*,robots*,runtimeFailures}.test.ts",
  "packages/politely/test/http/readAnswer.test.ts",
  "packages/politely-cli/test/serve/feed/{feedReaders,hostFeed,hour,ranking,seconds}.test.ts",
  "packages/politely-cli/test/view/{amounts,eta,hostBoard,liveLines,nextStart,pace,paint,summaryLines,views,width}.test.ts",
  "packages/politely-cli/test/{demo/verdict,get/filePath,get/sizeOption,serve/permits,serve/page/limitFields}.test.ts",
];
/** Tests that weigh memory, or search it for garbage: a process of their own each. */
const weighed = [
  "packages/politely/test/{shared/outageMemory,scheduler/slab,sources/source4,http/fetch/oddBodies}.test.ts",
  "packages/politely-cli/test/serve/{badInput,events,proxy/streaming}.test.ts",
];
const outside = ["**/node_modules/**"];
/** What is built on the library imports it by its entries, and needs none of this. */
const setupFiles = ["./packages/politely/test/withSharing.ts"];
/** One module graph for all files of a worker: the library is loaded once, and not once for each of three hundred files. */
const together = {
  setupFiles,
  isolate: false,
  pool: "threads",
  maxWorkers: "100%",
  sequence: { groupOrder: 0 },
} as const;
/** Real time on a machine that others use too: what fails once and not again is said to be flaky, and does not stop a change. A limit that was broken once is broken. */
const retry = { count: 1, condition: /^(?!a limit was broken)/ };

/** Where no run before says how long each file takes, the largest goes first. This one is small, and takes longest. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean => moduleId.endsWith("/test/stores/dynamodb.test.ts");
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    // Nothing sleeps, but a property plays hours of virtual time many times over.
    testTimeout: 60_000,
    // What was compiled the time before is not compiled again.
    experimental: { fsModuleCache: true },
    coverage: { include: ["packages/*/src/**"], reporter: ["text-summary", "html"] },
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: "here",
          include: ["packages/*/test/**/*.test.ts"],
          exclude: [...outside, ...library, ...programs, ...alone, ...weighed],
          ...together,
        },
      },
      {
        extends: true,
        test: { name: "pure", include: pure, ...together },
      },
      {
        extends: true,
        test: {
          name: "real",
          include: library,
          exclude: [...outside, ...pure, ...alone, ...waiting, ...weighed],
          setupFiles,
          maxWorkers: 3,
          retry,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "programs",
          include: programs,
          exclude: [...outside, ...pure, ...alone, ...waiting, ...weighed],
          maxWorkers: 3,
          retry,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: "weighed", include: weighed, setupFiles, maxWorkers: 3, sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        test: { name: "waiting", include: waiting, setupFiles, maxWorkers: 2, retry, sequence: { groupOrder: 2 } },
      },
      {
        extends: true,
        test: {
          name: "alone",
          include: alone,
          setupFiles,
          globalSetup: ["./packages/politely/test/fleet/bundleLibrary.ts"],
          maxWorkers: 1,
          retry,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
