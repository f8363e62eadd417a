import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Limiter, loadPolicy, politely } from "politely";
import { type CollectParts, collectDatapoint } from "./collectDatapoint.js";
import { type Datapoint, loadDatapoints } from "./datapoint.js";
import { SCALE, standInSites } from "./standIn.js";

interface Options {
  readonly polite: Limiter;
  readonly datapoints: readonly Datapoint[];
  readonly timeoutMs: number;
  readonly isDemo: boolean;
  readonly via: URL | undefined;
}

const fileBeside = (name: string): string => fileURLToPath(new URL(`../../../market-data/${name}`, import.meta.url));

function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      limits: { type: "string" },
      datapoints: { type: "string", default: fileBeside("datapoints.json") },
      timeout: { type: "string" },
      "base-url": { type: "string" },
      live: { type: "boolean", default: false },
    },
  });
  const isDemo = values["base-url"] === undefined && !values.live;
  const limits = values.limits ?? fileBeside(isDemo ? "limits.demo.json" : "limits.json");
  const timeoutMs = Number(values.timeout ?? (isDemo ? 2_000 : 10_000));
  if (!(Number.isInteger(timeoutMs) && timeoutMs > 0 && timeoutMs <= 600_000)) {
    throw new Error(`--timeout must be 1 to 600000 milliseconds; got ${values.timeout}.`);
  }
  return {
    polite: openLimiter(limits),
    datapoints: loadDatapoints(values.datapoints),
    timeoutMs,
    isDemo,
    via: readBaseUrl(values["base-url"]),
  };
}

function openLimiter(file: string): Limiter {
  try {
    return politely(loadPolicy(readFileSync(file, "utf8")));
  } catch (error) {
    throw new Error(`The limits ${file} cannot be used. ${(error as Error).message}`, { cause: error });
  }
}

function readBaseUrl(text: string | undefined): URL | undefined {
  if (text === undefined) return undefined;
  if (text.startsWith("http://") && URL.canParse(text)) return new URL(text);
  throw new Error(`--base-url must be a URL with http; got ${JSON.stringify(text)}.`);
}

async function run({ polite, datapoints, timeoutMs, isDemo, via }: Options): Promise<number> {
  const origin = isDemo ? standInSites() : undefined;
  const server = await origin?.listen();
  if (server !== undefined) {
    console.log(
      `Stand-ins for all sites listen at ${server.url}. The limits are ${SCALE} times as fast: a minute is 3 s.`,
    );
  }
  const beganAtMs = performance.now();
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort()); // a second Ctrl-C ends the process at once
  const parts: CollectParts = {
    polite,
    timeoutMs,
    via: server === undefined ? via : new URL(server.url),
    signal: stop.signal,
    say: ({ name, url, intent }, text) => {
      const atSec = ((performance.now() - beganAtMs) / 1_000).toFixed(2);
      console.log(`${atSec} s  ${new URL(url).host.padEnd(17)}  ${intent.padEnd(6)}  ${name}: ${text}`);
    },
  };

  let collectedCount = 0;
  const collectHost = async (ofHost: readonly Datapoint[]): Promise<void> => {
    for (const datapoint of ofHost) {
      if ((await collectDatapoint(datapoint, parts)) !== undefined) collectedCount += 1;
    }
  };
  // Hosts side by side, the datapoints of one host in turn.
  await Promise.all([...byHost(datapoints).values()].map(collectHost)).catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });

  console.log(`${collectedCount} of ${datapoints.length} datapoints collected.`);
  if (origin !== undefined) {
    console.log(`The stand-ins saw ${origin.total} requests, and refused ${origin.refused} for coming too often.`);
  }
  await polite.close();
  await server?.close();
  return stop.signal.aborted ? 130 : collectedCount === datapoints.length ? 0 : 1;
}

function byHost(datapoints: readonly Datapoint[]): Map<string, Datapoint[]> {
  const hosts = new Map<string, Datapoint[]>();
  for (const datapoint of datapoints) {
    const { hostname } = new URL(datapoint.url);
    hosts.set(hostname, [...(hosts.get(hostname) ?? []), datapoint]);
  }
  return hosts;
}

let options: Options | undefined;
try {
  options = readOptions(process.argv.slice(2));
} catch (error) {
  console.error((error as Error).message);
}
process.exitCode = options === undefined ? 2 : await run(options);
