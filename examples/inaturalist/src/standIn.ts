import { VirtualOrigin } from "politely/testing";

/** Times of the demonstration are real ones divided by this: a minute is 3 s. */
export const SCALE = 20;

const CALLS_BEFORE_TROUBLE = 70;
const TROUBLE_MS = 3_000;

/**
 * The API of the demonstration. It allows 60 calls in any 3 s. From the 71st call on it has a bad time of 3 s, in which it answers
 * everything with 429 and does not say for how long.
 */
export function standInApi(): VirtualOrigin {
  let troubleUntilMs: number | undefined;
  return new VirtualOrigin({
    latency: 20,
    limits: [{ kind: "sliding-window", rate: "60/3s" }],
    answers: ({ atMs, index, path }) => {
      if (index >= CALLS_BEFORE_TROUBLE) troubleUntilMs ??= atMs + TROUBLE_MS;
      if (troubleUntilMs !== undefined && atMs < troubleUntilMs) return 429;
      const id = Number(path.split("/").at(-1));
      const body = JSON.stringify({ total_results: 1, results: [{ id, species_guess: "Parus major" }] });
      return { headers: { "content-type": "application/json" }, body };
    },
  });
}

/** Makes a `fetch` that asks the server at `baseUrl` for what would go to the API itself. Pacing and headers stay as they are. */
export function sendTo(baseUrl: string): typeof fetch {
  return (input, init) => {
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    return fetch(baseUrl + pathname + search, init);
  };
}
