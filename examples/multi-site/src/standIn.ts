import { VirtualOrigin } from "politely/testing";

/** A site for the demonstration. It allows one request more at once than config.json does, since some are on their way for longer than others. */
export function standInSite(domain: string): VirtualOrigin {
  const [rate, burst] = domain === "av-wiki.net" ? (["2/s", 2] as const) : (["1/s", 1] as const);
  return new VirtualOrigin({ latency: 50, limits: [{ kind: "token-bucket", rate, burst: burst + 1 }] });
}

/** Makes a `fetch` that asks the server in `places` for what would go to a domain itself; domains that are not in it are asked themselves. Pacing stays as it is. */
export function sendTo(places: ReadonlyMap<string, string>): typeof fetch {
  return (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const place = places.get(url.hostname);
    return fetch(place === undefined ? url : place + url.pathname + url.search, init);
  };
}
