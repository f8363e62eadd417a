import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Logger, loadPolicy, type PolicyInput, politely } from "politely";
import { archive } from "./archive.js";
import { Fetcher } from "./fetcher.js";
import { loadSite, readBaseUrl, type Site } from "./loadSite.js";
import { Progress, seconds } from "./progress.js";
import { sendTo, standInSite } from "./standIn.js";
import { Storage } from "./storage.js";

interface Options {
  readonly site: Site;
  readonly policy: PolicyInput;
  readonly folder: string;
  readonly logger: Logger | undefined;
  /** Where requests go; undefined: to the site itself. `"stand-in"`: to one that is started here. */
  readonly sentTo: string | undefined;
}

const log = (line: string): void => console.error(line);

function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      config: { type: "string", default: fileURLToPath(new URL("../../../site-archiver/sites.json", import.meta.url)) },
      site: { type: "string", default: "site_a" },
      out: { type: "string", default: fileURLToPath(new URL("../archive", import.meta.url)) },
      "base-url": { type: "string" },
      live: { type: "boolean", default: false },
      verbose: { type: "boolean", default: false },
    },
  });
  const baseUrl = values["base-url"];
  const site = loadSite(values.config, values.site);
  // Before anything is asked for, so that nothing is fetched in vain.
  mkdirSync(values.out, { recursive: true });
  return {
    site,
    policy: policyOf(site),
    folder: values.out,
    logger: values.verbose ? { debug: log, info: log, warn: log } : { warn: log },
    sentTo: baseUrl === undefined ? (values.live ? undefined : "stand-in") : readBaseUrl(baseUrl, "--base-url"),
  };
}

/** A gap of 0 is none, and a site on this machine is not limited. */
function policyOf({ waitMs, userAgent }: Site): PolicyInput {
  return loadPolicy({
    default: { minDelay: waitMs, backoff: "exponential" },
    http: { userAgent, retry: { attempts: 3 } },
  });
}

async function run({ site, policy, folder, logger, sentTo }: Options): Promise<number> {
  const origin = sentTo === "stand-in" ? standInSite(site.baseUrl) : undefined;
  const server = await origin?.listen();
  if (server !== undefined) log(`A stand-in for ${site.baseUrl} listens at ${server.url}. Nothing is scaled.`);
  const address = server?.url ?? sentTo;

  const polite = politely(policy, { logger, fetch: address === undefined ? undefined : sendTo(address) });

  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort()); // a second Ctrl-C ends the process at once
  const savedCount = await archive(site.paths, {
    fetcher: new Fetcher(site.baseUrl, polite),
    storage: new Storage(folder),
    progress: new Progress(site.paths.length, process.stdout),
    signal: stop.signal,
  });

  const { meanIntervalMs = 0, totalWaitMs = 0 } = polite.stats(site.baseUrl) ?? {};
  console.log(`${savedCount} of ${site.paths.length} pages saved.`);
  if (meanIntervalMs > 0)
    console.log(`A request each ${seconds(meanIntervalMs)}; ${seconds(totalWaitMs)} were waited in all.`);
  if (origin !== undefined) {
    const gap = origin.total > 1 ? `, the closest two ${seconds(origin.shortestGapMs)} apart` : "";
    console.log(`The stand-in saw ${origin.total} requests${gap}, and refused ${origin.refused}.`);
  }
  await polite.close();
  await server?.close();
  return stop.signal.aborted ? 130 : savedCount === site.paths.length ? 0 : 1;
}

let options: Options | undefined;
try {
  options = readOptions(process.argv.slice(2));
} catch (error) {
  console.error((error as Error).message);
}
process.exitCode = options === undefined ? 2 : await run(options);
