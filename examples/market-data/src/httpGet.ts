import { once } from "node:events";
import http from "node:http";
import https from "node:https";

/** What a site answered. */
export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** How a page is got. */
export interface GetOptions {
  /** Ends the request: at Ctrl-C, or when it has taken too long. */
  readonly signal: AbortSignal;
  /** A server that is asked for the whole URL, as a proxy is. Default: the site itself. */
  readonly via: URL | undefined;
}

const MAX_BYTES = 4 * 1024 * 1024;
const headers = { "user-agent": "MarketData/1.0 (+https://example.com/about-this-collector)" };

/** Gets a page. This stands for whatever client you use: it knows nothing of limits. Rejects when the connection fails, and for more than 4 MiB. */
export async function httpGet(url: string, { signal, via }: GetOptions): Promise<Answer> {
  const target = new URL(url);
  const request =
    via === undefined
      ? (target.protocol === "https:" ? https : http).get(target, { signal, headers })
      : http.get(via, { path: url, signal, headers: { ...headers, host: target.host } });
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  let byteCount = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    byteCount += chunk.byteLength;
    // Leaving the loop breaks the connection.
    if (byteCount > MAX_BYTES) throw new Error(`${url} has more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks).toString() };
}
