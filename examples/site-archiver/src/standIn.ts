import { VirtualOrigin } from "politely/testing";

/** A site for the demonstration: takes 0.3 s for a page, and refuses who comes again within 1.5 s. One on this machine refuses nobody. */
export function standInSite(baseUrl: string): VirtualOrigin {
  const isLocal = new URL(baseUrl).hostname === "localhost";
  return new VirtualOrigin({
    latency: 300,
    limits: isLocal ? [] : [{ kind: "sliding-window", rate: "1/1.5s" }],
    answers: ({ path }) => ({ headers: { "content-type": "text/html" }, body: `<h1>This is ${path}</h1>\n` }),
  });
}

/** Makes a `fetch` that asks the server at `baseUrl` for what would go to the site itself. Pacing and User-Agent stay as they are. */
export function sendTo(baseUrl: string): typeof fetch {
  return (input, init) => {
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    return fetch(baseUrl + pathname + search, init);
  };
}
