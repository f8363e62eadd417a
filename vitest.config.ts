import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Tests that fill the machine with processes that answer each other: one file at a time, so that none waits for another's processor. */
const alone = [
  "packages/politely/test/fleet/proof/{crowd,dynamodb,postgres,redis,redisFaults,sqlite}.test.ts",
  "packages/politely/test/stores/lease/processes.test.ts",
];
/** Tests that judge time too, but leave more than half of a machine with two cores idle: three files at a time. */
const waiting = [
  "packages/politely/test/fleet/proof/threads.test.ts",
  "packages/politely/test/stores/lease/slowWay.test.ts",
  "packages/politely/test/stores/postgres/distance.test.ts",
  "packages/politely/test/servers/proof/proof.test.ts",
  "packages/politely-cli/test/serve/page/smooth.test.ts",
  "examples/tdnet-lambda/test/fleet/**/*.test.ts",
];
/** The others that start servers and processes, or speak through real sockets: of the library, and of what is built on it. */
const library = ["packages/politely/test/{fleet,stores,http,servers}/**/*.test.ts"];
const programs = ["packages/politely-cli/test/{demo,get,main,serve,view}/**/*.test.ts", "examples/*/test/**/*.test.ts"];
/** Those of the same folders that need neither sockets nor processes. */
const pure = [
  "packages/politely/test/http/{domains,headers,robots}/**/*.test.ts",
  "packages/politely/test/http/fetch/{identity,listening,retry*,robots*,runtimeFailures}.test.ts",
  "packages/politely/test/http/readAnswer.test.ts",
  "packages/politely/test/fleet/{checkStarts,joinStarts,proof/watchStore}.test.ts",
  "packages/politely/test/servers/{proof/measure,summarise}.test.ts",
  "packages/politely-cli/test/serve/feed/{feedReaders,hostFeed,hour,ranking,seconds}.test.ts",
  "packages/politely-cli/test/view/{amounts,eta,hostBoard,liveLines,nextStart,pace,paint,summaryLines,views,width}.test.ts",
  "packages/politely-cli/test/{demo/verdict,get/filePath,get/sizeOption,serve/permits,serve/page/limitFields}.test.ts",
];
/** Tests that weigh memory, or search it for garbage: a process of their own each. */
const weighed = [
  "packages/politely/test/{engine/slab,sources/source4,http/fetch/oddBodies}.test.ts",
  "packages/politely-cli/test/serve/{badInput,events,proxy/streaming}.test.ts",
];
/** Those that take longest by themselves, the longest first: begun last, one of them would keep everybody waiting. */
const longest = [
  "politely/test/stores/dynamodb",
  "serve/page/page",
  "get/nginx",
  "get/share",
  "get/resume",
  "servers/proof/proof",
  "tdnet-lambda/test/fleet/collector",
  "redis/differential",
  "serve/page/axe",
  "serve/serve",
  "clients/clients",
  "demo/demo",
  "get/queueShare",
  "plan/planRun.property",
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

/** Most of them wait for most of their time: for a site, a limit, a process. */
const side = { retry, maxWorkers: 5, sequence: { groupOrder: 1 } };

/** Where no run before says how long each file takes, the largest goes first otherwise. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification): number =>
      longest.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`)) + 1 || longest.length + 1;
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rankOf(a) - rankOf(b));
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
          ...side,
        },
      },
      {
        extends: true,
        test: {
          name: "programs",
          include: programs,
          exclude: [...outside, ...pure, ...alone, ...waiting, ...weighed],
          ...side,
        },
      },
      {
        extends: true,
        test: { name: "weighed", include: weighed, setupFiles, ...side, retry: 0 },
      },
      {
        extends: true,
        test: { name: "waiting", include: waiting, setupFiles, maxWorkers: 3, retry, sequence: { groupOrder: 2 } },
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
