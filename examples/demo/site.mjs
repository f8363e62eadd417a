import { createServer } from "node:http";

/**
 * Starts a small site on this machine that answers at most `limit` requests in every interval of `periodMs`.
 *
 * Everything beyond is answered with 429 and a Retry-After. The site does its own counting: it knows nothing of who calls.
 *
 * @param {{ limit: number; periodMs: number }} options
 */
export async function startSite({ limit, periodMs }) {
  /** When the requests that were let in came in, the last `limit` of them. @type {number[]} */
  let arrivals = [];
  const counts = { answered: 0, refused: 0 };

  const server = createServer((request, response) => {
    const now = performance.now();
    arrivals = arrivals.filter((arrival) => now - arrival < periodMs);
    const [oldest] = arrivals;
    if (oldest !== undefined && arrivals.length >= limit) {
      counts.refused += 1;
      const waitSeconds = Math.ceil((oldest + periodMs - now) / 1000);
      response.writeHead(429, { "retry-after": String(waitSeconds) }).end("Too many requests.\n");
      return;
    }
    arrivals.push(now);
    counts.answered += 1;
    response.end(`This is ${request.url}.\n`);
  });

  await new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(undefined));
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;

  return {
    url: `http://127.0.0.1:${port}`,
    /** What was answered and refused since the last look. */
    takeCounts() {
      const taken = { ...counts };
      counts.answered = 0;
      counts.refused = 0;
      return taken;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
