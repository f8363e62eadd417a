import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { politely } from "politely";
import { threadMemory, threadStore } from "politely/threads";
import { INaturalistClient } from "./client.js";
import { loadSettings, type Settings } from "./settings.js";
import { SCALE, standInApi } from "./standIn.js";
import type { WorkerNews, WorkerTask } from "./worker.js";

interface Options {
  readonly settings: Settings;
  readonly token: string | undefined;
  readonly count: number;
  readonly isDemo: boolean;
  readonly baseUrl: string | undefined;
}

const MAX_COUNT = 10_000;
/** A line for so many observations. */
const SAID_EACH = 10;

const fileBeside = (name: string): string => fileURLToPath(new URL(`../../../inaturalist/${name}`, import.meta.url));

function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      settings: { type: "string" },
      count: { type: "string", default: "100" },
      "base-url": { type: "string" },
      live: { type: "boolean", default: false },
    },
  });
  // An empty one is none.
  const token = process.env.INATURALIST_TOKEN || undefined;
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new Error("INATURALIST_TOKEN must be one word of plain letters, as iNaturalist gives it.");
  }
  const baseUrl = values["base-url"]?.replace(/\/$/, "");
  const isDemo = baseUrl === undefined && !values.live;
  const count = Number(values.count);
  if (!(Number.isInteger(count) && count >= 1 && count <= MAX_COUNT)) {
    throw new Error(`--count must be 1 to ${MAX_COUNT}; got ${values.count}.`);
  }
  if (baseUrl !== undefined && !(/^https?:\/\//.test(baseUrl) && URL.canParse(baseUrl))) {
    throw new Error(`--base-url must be a URL with http or https; got ${JSON.stringify(baseUrl)}.`);
  }
  const file = values.settings ?? fileBeside(isDemo ? "client.demo.json" : "client.json");
  return { settings: loadSettings(file, token !== undefined), token, count, isDemo, baseUrl };
}

async function run({ settings, token, count, isDemo, baseUrl }: Options): Promise<number> {
  const origin = isDemo ? standInApi() : undefined;
  const server = await origin?.listen();
  if (server !== undefined) {
    console.log(`A stand-in for the API listens at ${server.url}. Times are divided by ${SCALE}: a minute is 3 s.`);
  }
  const { policy, workerCount } = settings;
  const memory = threadMemory();
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  const workers = Array.from({ length: workerCount }, (_, worker) => {
    const part = ids.filter((_id, index) => index % workerCount === worker);
    const task: WorkerTask = { memory, policy, token, baseUrl: server?.url ?? baseUrl, ids: part };
    return new Worker(new URL("./worker.js", import.meta.url), { workerData: task });
  });
  let isStopped = false;
  process.once("SIGINT", () => {
    isStopped = true;
    for (const worker of workers) worker.postMessage("stop");
  }); // a second Ctrl-C ends the process at once

  let doneCount = 0;
  const hear = (news: WorkerNews, worker: number): void => {
    if (news.kind === "cooldown")
      console.log(`worker ${worker}: ${news.because}, nobody calls for ${Math.round(news.holdMs)} ms`);
    if (news.kind === "failed") console.log(`worker ${worker}: observation ${news.id} failed: ${news.message}`);
    if (news.kind !== "done") return;
    doneCount += 1;
    if (doneCount % SAID_EACH > 0) return;
    console.log(`${doneCount}/${count} observations; calls remaining: ${news.callsRemaining ?? "?"}`);
  };
  for (const [index, worker] of workers.entries()) worker.on("message", (news: WorkerNews) => hear(news, index + 1));
  await Promise.all(workers.map((worker) => once(worker, "exit")));

  const polite = politely(policy, { store: threadStore(memory) });
  console.log("stats:", JSON.stringify((await new INaturalistClient(polite).getStats()) ?? {}));
  console.log(`${doneCount} of ${count} observations read by ${workerCount} threads.`);
  if (origin !== undefined) {
    const most = `at most ${origin.mostInAny(3_000)} in any 3 s`;
    console.log(`The stand-in saw ${origin.total} calls, ${most}, and refused ${origin.refused} for coming too often.`);
  }
  await polite.close();
  await server?.close();
  return isStopped ? 130 : doneCount === count ? 0 : 1;
}

let options: Options | undefined;
try {
  options = readOptions(process.argv.slice(2));
} catch (error) {
  console.error((error as Error).message);
}
process.exitCode = options === undefined ? 2 : await run(options);
