import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { loadPolicy, type PolicyInput, politely } from "politely";
import { crawl } from "./crawl.js";
import { sendTo, standInSite } from "./standIn.js";
import { readUrls } from "./urlList.js";

interface Options {
  readonly policy: PolicyInput;
  readonly urls: readonly URL[];
  /** Where the requests of a domain go instead of to the domain itself. */
  readonly places: ReadonlyMap<string, string>;
  readonly isDemo: boolean;
}

/** What the statistics of a domain show; without this list, there is more. */
const statsKeys = [
  "domain",
  "total_requests",
  "delayed_requests",
  "total_wait_time_ms",
  "average_wait_time_ms",
  "last_request_time",
  "delay_rate",
];
/** Who is calling, and where to complain. Put yours here. */
const WHO = { userAgent: "MultiSite/1.0", contact: "https://example.com/about-this-crawler" };
/** Requests in flight at once, of all domains together. */
const CONCURRENCY = 8;

const fileBeside = (name: string): string => fileURLToPath(new URL(`../../../multi-site/${name}`, import.meta.url));
const say = (line: string): void => console.error(line);

function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      config: { type: "string", default: fileBeside("config.json") },
      urls: { type: "string", default: fileBeside("urls.txt") },
      "base-url": { type: "string", multiple: true, default: [] },
      live: { type: "boolean", default: false },
    },
  });
  return {
    policy: readPolicy(values.config),
    urls: readUrls(values.urls),
    places: new Map(values["base-url"].map(readPlace)),
    isDemo: values["base-url"].length === 0 && !values.live,
  };
}

function readPolicy(file: string): PolicyInput {
  try {
    return { global: { concurrency: CONCURRENCY }, http: WHO, ...loadPolicy(readFileSync(file, "utf8")) };
  } catch (error) {
    throw new Error(`The config ${file} cannot be used. ${(error as Error).message}`, { cause: error });
  }
}

function readPlace(text: string): [domain: string, baseUrl: string] {
  const [, domain = "", baseUrl = ""] = /^([^=]+)=(https?:\/\/.+?)\/?$/.exec(text) ?? [];
  if (domain !== "" && URL.canParse(baseUrl)) return [domain, baseUrl];
  throw new Error(`--base-url must be a domain, "=" and a URL with http or https; got ${JSON.stringify(text)}.`);
}

async function run({ policy, urls, places, isDemo }: Options): Promise<number> {
  const domains = isDemo ? [...new Set(urls.map(({ hostname }) => hostname))] : [];
  const origins = domains.map(standInSite);
  const servers = await Promise.all(origins.map((origin) => origin.listen()));
  if (isDemo) say(`${domains.length} stand-ins listen, one for each domain. Nothing is scaled.`);
  const allPlaces = new Map([...places, ...servers.map(({ url }, index) => [domains[index] ?? "", url] as const)]);

  const polite = politely(policy, { logger: { warn: say }, fetch: sendTo(allPlaces) });
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort()); // a second Ctrl-C ends the process at once
  const okCount = await crawl(urls, { polite, signal: stop.signal, say });

  say(`${okCount} of ${urls.length} pages came.`);
  for (const [index, { total, refused }] of origins.entries()) {
    say(`The stand-in for ${domains[index]} saw ${total} requests, and refused ${refused}.`);
  }
  console.log(JSON.stringify(polite.stats(), statsKeys, 2));
  await polite.close();
  await Promise.all(servers.map((server) => server.close()));
  return stop.signal.aborted ? 130 : okCount === urls.length ? 0 : 1;
}

let options: Options | undefined;
try {
  options = readOptions(process.argv.slice(2));
} catch (error) {
  console.error((error as Error).message);
}
process.exitCode = options === undefined ? 2 : await run(options);
