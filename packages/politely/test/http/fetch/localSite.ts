import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request as the site saw it. */
export interface SiteRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A small real site on one loopback address. */
export interface LocalSite extends AsyncDisposable {
  readonly origin: string;
  readonly seen: SiteRequest[];
  /** The most answers that were under way at once. */
  peak: number;
}

/** Starts a site; `answer` is given each request once its body is there. */
export async function localSite(
  address: string,
  answer: (request: SiteRequest, response: ServerResponse, index: number) => void,
): Promise<LocalSite> {
  let inFlight = 0;
  const server: Server = createServer((message, response) => {
    inFlight += 1;
    site.peak = Math.max(site.peak, inFlight);
    response.on("close", () => {
      inFlight -= 1;
    });
    const chunks: Buffer[] = [];
    message.on("data", (chunk: Buffer) => chunks.push(chunk));
    message.on("end", () => {
      const { method = "", url = "", headers } = message;
      const request = { method, url, headers, body: Buffer.concat(chunks).toString() };
      site.seen.push(request);
      answer(request, response, site.seen.length - 1);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as AddressInfo;
  const site: LocalSite = {
    origin: `http://${address}:${port}`,
    seen: [],
    peak: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return site;
}
