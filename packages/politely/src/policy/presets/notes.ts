/** What people should know of each site: id | notes | sources, if there are any. Only `politely/presets` loads it. */
export const notes = `
arxiv | Covers the query, OAI-PMH and RSS interfaces together, over a single connection. Sends no rate headers. | https://info.arxiv.org/help/api/tou.html
ncbi-eutils | Send the parameters tool and email. Run large jobs on weekends or from 21:00 to 05:00 US Eastern. Too fast: 429, later a block of the address. | https://support.nlm.nih.gov/kbArticle/?pn=KA-05510 | https://www.ncbi.nlm.nih.gov/books/NBK25497/
pubchem | At most 300 s of running time a minute as well. X-Throttling-Control shows the load as a traffic light. Too fast: 503. | https://pubchem.ncbi.nlm.nih.gov/docs/programmatic-access
crossref-polite | The polite pool wants mailto= or an address in User-Agent. Use the intent list for lists and filters. Numbers of 2025-12-01; the live ones come in x-rate-limit-limit, x-rate-limit-interval and x-concurrency-limit. A 403 was set by hand: stop. | https://crossref.org/documentation/retrieve-metadata/rest-api/access-and-authentication/ | https://doi.org/10.64000/wadve-3tj60
openalex | Wants a key since 2026-02-13, with a daily budget in money: 0.01 to 0.10 USD without one, 1 USD with a free one. 429 means the budget is spent, 403 too fast. | https://developers.openalex.org/api-reference/authentication | https://developers.openalex.org/api-reference/errors
semantic-scholar | Callers without a key share one pool, so it is often less. Asks for exponential backoff. | https://www.semanticscholar.org/product/api
datacite | Per address, with an e-mail in User-Agent or mailto. Less for those who do not say who they are. | https://support.datacite.org/docs/rate-limit
ror | A client id is free. The lower limit for callers without one is announced for the third quarter of 2026. | https://ror.org/api-client-id
inaturalist | Throttles at 100 a minute and asks for 60. Media above 5 GB an hour or 24 GB a day may end in a lasting block. A query gives at most 10,000 results; go on with id_above. | https://api.inaturalist.org/v1/docs/ | https://www.inaturalist.org/pages/api+recommended+practices
gbif | Three downloads at a time, one under load; more gives 420. Nothing is published for search, which answers 429 when busy. | https://docs.ropensci.org/rgbif/reference/downloads.html
wikimedia-action-api | About 200 a minute with a contact in User-Agent and 10 without one, counted over all wikis together, one request after the other; more with a login. Several titles at once, gzip, and maxlag=5 for batch jobs. 429 comes with Retry-After. | https://www.mediawiki.org/wiki/API:Etiquette | https://www.mediawiki.org/wiki/Wikimedia_APIs/Rate_limits | https://www.mediawiki.org/wiki/Wikimedia_APIs/Access_policy | https://foundation.wikimedia.org/wiki/Policy:Wikimedia_Foundation_User-Agent_Policy
wikidata-sparql | The 60 a minute are seconds of query time: give a query's time as its cost. At most 30 failed queries a minute. Going on after 429 brings a ban of a day. | https://www.mediawiki.org/wiki/Wikidata_Query_Service/User_Manual#Query_limits
nominatim | Over all users of an application together. Needs a User-Agent or Referer of its own. Keep results; no completion while typing, no bulk geocoding. A block shows as 403. | https://operations.osmfoundation.org/policies/nominatim/
overpass | Two places per address on the main server, and about 1 GB a day. 429 when no place is free, 504 under load. | https://dev.overpass-api.de/overpass-doc/en/preface/commons.html
arquivo-pt | Image search and Memento allow 400 a minute. Too fast: a lasting block. | https://github.com/arquivo/pwa-technologies/wiki/APIs
wayback | Nothing is published; a cautious choice. Availability, CDX and save often answer 429.
open-library | Users speak of 3 a second for callers who say who they are; not confirmed. | https://github.com/internetarchive/openlibrary/issues/10585
sec-edgar | Counts all machines of one user together. Too fast: shut out until the rate was low for ten minutes, and asking on makes it longer. User-Agent is company and e-mail; without it comes a 403 page. | https://www.sec.gov/os/accessing-edgar-data | sec-edgar-downloader 5.0.0 release notes
companies-house | Per key, in fixed windows; the document host counts apart. Sends X-Ratelimit-Remain, -Reset and -Window. Too fast too often: a ban without notice. Two streaming connections. | https://developer.company-information.service.gov.uk/developer-guidelines
eia | Advice rather than a promise; the true rules are kept secret. A key that was too fast rests for a while. No headers. | https://www.eia.gov/opendata/faqs.php
openfda | Only the daily number grows with a key. | https://open.fda.gov/apis/authentication/
api-data-gov | A rolling hour per key. DEMO_KEY: 30 an hour and 50 a day per address. Sends X-RateLimit-Limit and -Remaining. | https://api.data.gov/docs/rate-limits/
nrel | For the download interfaces. CSV: 1 a second and 5,000 a day. | https://developer.nrel.gov/docs/wave/guide/
openaq | Headers say how much is used, left, and when it begins again. | https://docs.openaq.org/docs/usage-limits
weather-gov | The number is not published, so this is a cautious choice. A refused request may be sent again after about 5 s. | https://www.weather.gov/documentation/services-web-api
fred | Per key. Too fast: 429, which in practice is over after 20 s. | https://fred.stlouisfed.org/docs/api/api_key.html
edinet | Nothing is published; a cautious choice. The operators watch the load and suspend keys by hand; 429, cut connections, at times a mail. Version 2 needs a key. | https://time2log.com/2024/09/01/ja/edinet/ (practice report)
tdnet | Nothing is published for the viewer pages; a cautious choice. The official interface is a paid service of JPX. | https://api-gallery.com/?p=10328
yahoo-finance | No public interface, and the terms forbid much automated use. Users tell of 429 after some 950 quick calls, of bans for a day, and of about 360 an hour. | https://github.com/ranaroussi/yfinance/issues/2128 | https://github.com/ranaroussi/yfinance/issues/312
reuters | Licensed feeds only; robots.txt and the terms restrict programs. A cautious choice.
binance | Counts weight: give a request's weight as its cost. 429, then 418 with a ban of two minutes to three days; both with Retry-After. 403 is the web firewall. | https://developers.binance.com/docs/binance-spot-api-docs/rest-api/limits
github-rest | Also 900 points and 80 creations a minute. Too fast: 403 or 429 with x-ratelimit-remaining 0 or retry-after, else wait a minute and double it. Going on may ban the integration. | https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
gitlab-com | Many paths have less: users 300 in 10 minutes. RateLimit-Reset is Unix time. | https://docs.gitlab.com/user/gitlab_com/#rate-limits-on-gitlabcom
stackexchange | Obey the field backoff in the body, in seconds, for the same method. Over 30 a second: dropped, then banned. | https://api.stackexchange.com/docs/throttle
huggingface-hub | Per address, in fixed windows; more with a token. The host's window is that of file downloads; use the intents api and pages for the rest. Trust RateLimit, not RateLimit-Policy. | https://huggingface.co/docs/hub/rate-limits
cloudflare-api | And 200 a second per address. Too fast: every call is refused for five minutes. Sends Ratelimit and Ratelimit-Policy. | https://developers.cloudflare.com/fundamentals/api/reference/limits
crates-io | For much at once take the database dump or the sparse index. | https://crates.io/data-access
ip-api | Use the intent batch for the batch path. Sends X-Rl and X-Ttl. Too fast all the time: a lasting ban. | https://ip-api.com/docs/unban
shopify-rest | A leaky bucket of 40; Advanced has 4 a second, Plus 20. An old interface. Retry-After comes as 2.0. | https://shopify.dev/docs/api/admin-rest/usage/rate-limits
trello | Per token; 300 in 10 s per key, and /1/members 100 in 15 minutes. No headers. | https://developer.atlassian.com/cloud/trello/guides/rest-api/rate-limits
reddit | Per client, averaged over ten minutes. User-Agent names platform, application, version and /u/name; those of libraries are slowed hard. X-Ratelimit-Reset is seconds. | https://support.reddithelp.com/hc/en-us/articles/16160319875092-Reddit-Data-API-Wiki
bluesky | Per address. Sessions: 30 in five minutes, 300 a day. RateLimit-Reset is Unix time. | https://docs.bsky.app/docs/advanced-guides/rate-limits
mastodon | What a server has unless its owner changed it (7,500 was seen), per account or address. X-RateLimit-Reset is ISO time. | https://docs.joinmastodon.org/api/rate-limits/
musicbrainz | Per address on average; also 50 a second per User-Agent and 300 for everybody. Too fast: 503 to all until it is slower. | https://musicbrainz.org/doc/MusicBrainz_API/Rate_Limiting
discogs | A moving window. Sends X-Discogs-Ratelimit, -Used and -Remaining. | https://www.discogs.com/developers
scryfall | Use the intent search for /cards/search, /cards/named, /cards/random and /cards/collection. Needs an Accept header. A 429 shuts you out for 30 s. Keep answers for a day; take bulk files. | https://scryfall.com/docs/api/rate-limits
anilist | Writes of 90 a minute and has given 30 for long; X-RateLimit-Limit tells. | https://github.com/Dim145/plex-auto-genres/releases/tag/v2.2.2
jikan | The limits of version 4. | https://docs.api.jikan.moe/
lichess | One request at a time. After a 429 stay away for a full minute. | https://lichess.org/api
e621 | The hard bound is 2 a second, answered with 503. | https://e926.net/help/show/api#basics
strava | Windows begin at each quarter of an hour and at midnight UTC. Use the intent read for reads. | https://developers.strava.com/docs/rate-limits
`;
