import type { HostLimits, Limits } from "../types.js";
import type { Confidence, PolicyPreset, Preset, UserAgentRule } from "./index.js";

/** What a policy needs to know of a site. What people should know is in `notes.ts`. */
export type Site = Omit<Preset, "notes" | "sources">;

/**
 * The known sites, by theme, a line each: id | hosts (after `together:` where the site counts them as one; `any`: software on many hosts) |
 * limits, those of an intent with its name in front | what it asks of the User-Agent | confidence | date | limits `withKey` or
 * `withoutContact`, where they differ.
 */
const table = `
arxiv | together: export.arxiv.org arxiv.org | window 1/3s; concurrency 1 | recommended | high | 2026-11-15
ncbi-eutils | eutils.ncbi.nlm.nih.gov | window 3/s | recommended | high | 2026-11-15 | withKey: window 10/s
pubchem | pubchem.ncbi.nlm.nih.gov | window 5/s & 400/min | recommended | medium | 2026-11-15
crossref-polite | api.crossref.org | window 10/s; concurrency 3; list: window 3/s | required, with contact | high | 2026-11-15 | withoutContact: window 5/s; concurrency 1; list: window 1/s
openalex | api.openalex.org | window 100/s | recommended | high | 2026-11-15
semantic-scholar | api.semanticscholar.org | window 100/5min; backoff exponential | no rule found | medium | 2026-11-15 | withKey: window 1/s; backoff exponential
datacite | api.datacite.org | window 1000/5min | required, with contact | medium | 2026-11-15 | withKey: window 3000/5min
ror | api.ror.org | window 50/5min | no rule found | medium | 2026-11-15 | withKey: window 2000/5min
inaturalist | together: api.inaturalist.org www.inaturalist.org | window 60/min & 10000/day; concurrency 1 | recommended | high | 2026-11-15
gbif | api.gbif.org | concurrency 3 | recommended | medium | 2026-11-15
wikimedia-action-api | together: *.wikipedia.org *.wikimedia.org *.wiktionary.org *.wikidata.org www.mediawiki.org | window 200/min; concurrency 1 | required, with contact | high | 2026-11-19 | withoutContact: window 10/min; concurrency 1
wikidata-sparql | query.wikidata.org | window 60/min; concurrency 5 | required, with contact | high | 2026-11-15
nominatim | nominatim.openstreetmap.org | window 1/s; concurrency 1 | required, descriptive | high | 2026-11-15
overpass | overpass-api.de | window 10000/day; concurrency 2 | recommended | medium | 2026-11-15
arquivo-pt | arquivo.pt | window 250/min | no rule found | high | 2026-11-15
wayback | together: web.archive.org archive.org | window 1/4s; concurrency 1 | recommended | low | 2026-11-15
open-library | openlibrary.org | window 1/s; concurrency 1 | recommended | low | 2026-11-15
sec-edgar | together: www.sec.gov data.sec.gov efts.sec.gov | window 10/s; cooldown 10min | required, with contact | high | 2026-11-15
companies-house | api.company-information.service.gov.uk document-api.company-information.service.gov.uk | window 600/5min | no rule found | high | 2026-11-15
eia | api.eia.gov | window 5/s & 9000/h | no rule found | high | 2026-11-15
openfda | api.fda.gov | window 240/min & 1000/day | no rule found | high | 2026-11-15 | withKey: window 240/min & 120000/day
api-data-gov | together: api.data.gov api.nasa.gov api.congress.gov api.govinfo.gov | window 1000/h | no rule found | medium | 2026-11-15
nrel | developer.nrel.gov | window 1/2s & 1000/day; concurrency 20 | no rule found | high | 2026-11-15
openaq | api.openaq.org | window 300/5min | no rule found | high | 2026-11-15
weather-gov | api.weather.gov | window 1/s | required, with contact | medium | 2026-11-15
fred | api.stlouisfed.org | window 120/min | no rule found | high | 2026-11-15
edinet | together: api.edinet-fsa.go.jp disclosure2.edinet-fsa.go.jp | window 1/3s; concurrency 1 | no rule found | low | 2026-11-15
tdnet | www.release.tdnet.info | window 1/5s; concurrency 1 | no rule found | low | 2026-11-15
yahoo-finance | together: query1.finance.yahoo.com query2.finance.yahoo.com | window 1/2s & 360/h; concurrency 1 | no rule found | low | 2026-11-15
reuters | www.reuters.com | window 1/10s; concurrency 1 | no rule found | low | 2026-11-15
binance | api.binance.com | window 6000/min | no rule found | high | 2026-11-15
github-rest | api.github.com | window 60/h; concurrency 100; backoff exponential; search: window 10/min | required, descriptive | high | 2026-11-15 | withKey: window 5000/h; concurrency 100; backoff exponential; search: window 30/min
gitlab-com | gitlab.com | window 500/min | no rule found | medium | 2026-11-15 | withKey: window 2000/min
stackexchange | api.stackexchange.com | window 30/s & 300/day | no rule found | high | 2026-11-15 | withKey: window 30/s & 10000/day
huggingface-hub | huggingface.co | window 3000/5min; api: window 500/5min; pages: window 100/5min | no rule found | high | 2026-11-15
cloudflare-api | api.cloudflare.com | window 1200/5min; cooldown 5min | no rule found | high | 2026-11-15
crates-io | crates.io | window 1/s; concurrency 1 | required, with contact | high | 2026-11-15
ip-api | ip-api.com | window 45/min; batch: window 15/min | no rule found | high | 2026-11-15
shopify-rest | *.myshopify.com | window 2/s | no rule found | high | 2026-11-15
trello | api.trello.com | window 100/10s | no rule found | high | 2026-11-15
reddit | together: oauth.reddit.com www.reddit.com | window 100/min | required, with contact | medium | 2026-11-15
bluesky | public.api.bsky.app bsky.social | window 3000/5min | no rule found | high | 2026-11-15
mastodon | any | window 300/5min | no rule found | high | 2026-11-15
musicbrainz | musicbrainz.org | window 1/s; concurrency 1 | required, with contact | high | 2026-11-15
discogs | api.discogs.com | window 25/min | required, descriptive | high | 2026-11-15 | withKey: window 60/min
scryfall | api.scryfall.com | window 10/s; search: window 2/s | required, descriptive | high | 2026-11-15
anilist | graphql.anilist.co | window 30/min | no rule found | high | 2026-11-15
jikan | api.jikan.moe | window 3/s & 60/min | no rule found | medium | 2026-11-15
lichess | lichess.org | concurrency 1; cooldown 1min | no rule found | high | 2026-11-15
e621 | together: e621.net e926.net | window 1/s; concurrency 1 | required, with contact | high | 2026-11-15
strava | www.strava.com | window 200/15min & 2000/day; read: window 100/15min & 1000/day | no rule found | high | 2026-11-15
`;

/** All known sites. */
export const sites: readonly Site[] = table.trim().split("\n").map(siteOf);

const reuters: Limits = { minDelay: 3_000, window: "2/min", backoff: "exponential" };
const eia: Limits = { minDelay: 1_000, window: "10/min", backoff: "none" };

/** A whole policy for collectors of financial news and energy data, with a careful default. */
export const collector: PolicyPreset = {
  id: "collector",
  policy: {
    default: { minDelay: 1_000, window: "5/min", backoff: "linear" },
    hosts: {
      "finance.yahoo.com": { minDelay: 2_000, window: "3/min", backoff: "exponential" },
      "reuters.com": reuters,
      "www.reuters.com": reuters,
      "*.company-ir": { minDelay: 1_000, window: "5/min", backoff: "linear" },
      "eia.gov": eia,
      "www.eia.gov": eia,
      "api.eia.gov": eia,
    },
  },
  notes: "A gap and a count per minute for each host. Chosen with care rather than published by the sites.",
  date: "2026-11-19",
};

function siteOf(line: string): Site {
  const [id, hosts, limits, userAgent, confidence, date, ...variants] = line.split(" | ");
  const names = hosts.split(" ").filter((name) => name !== "any");
  const areTogether = names[0] === "together:";
  return {
    id,
    hosts: areTogether ? names.slice(1) : names,
    limits: limitsOf(limits),
    ...(areTogether ? { countsTogether: true } : {}),
    userAgent: userAgent as UserAgentRule,
    requiresContact: userAgent === "required, with contact",
    confidence: confidence as Confidence,
    date,
    ...Object.fromEntries(variants.map((text) => [text.split(":", 1)[0], limitsOf(text.replace(/^.*?: /, ""))])),
  };
}

/** Reads limits such as `window 30/s & 300/day; concurrency 1; search: window 10/min`. */
function limitsOf(text: string): HostLimits {
  const limits: Record<string, unknown> = {};
  const intents: Record<string, Record<string, unknown>> = {};
  for (const part of text.split("; ")) {
    const [, intent, field, value] = /^(?:(\S+): )?(\S+) (.+)$/.exec(part) ?? [];
    const values = value.split(" & ").map((each) => (/^\d+$/.test(each) ? Number(each) : each));
    const read = { [field]: values.length === 1 ? values[0] : values };
    if (intent === undefined) Object.assign(limits, read);
    else intents[intent] = { ...intents[intent], ...read };
  }
  return Object.keys(intents).length === 0 ? limits : { ...limits, intents };
}
