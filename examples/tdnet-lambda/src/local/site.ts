import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** One request, as the site saw it. */
export interface Arrival {
  /** `performance.now()` of the site's process. */
  readonly atMs: number;
  readonly path: string;
  readonly userAgent: string;
}

/** A stand-in for the site on this machine. */
export interface LocalSite {
  /** `"http://127.0.0.1:4711"`. */
  readonly url: string;
  /** Every request so far, in order. */
  readonly arrivals: readonly Arrival[];
  /** How many requests were under way at the same time, at most. */
  readonly mostAtOnce: number;
  /** Keeps all answers back until the function returned is called. */
  hold(): () => void;
  /** Answers the next requests with these statuses, one after the other, instead of with their pages. */
  fail(...statuses: number[]): void;
  close(): void;
}

/** Starts a site with `pageCount` list pages for every day, three documents on each. A page after the last is answered with 404. */
export async function startSite({ pageCount }: { readonly pageCount: number }): Promise<LocalSite> {
  const arrivals: Arrival[] = [];
  const failures: number[] = [];
  let gate = Promise.resolve();
  let inFlight = 0;
  let mostAtOnce = 0;

  const server = createServer(({ url: path = "", headers }, response) => {
    arrivals.push({ atMs: performance.now(), path, userAgent: headers["user-agent"] ?? "" });
    const failure = failures.shift();
    inFlight += 1;
    mostAtOnce = Math.max(mostAtOnce, inFlight);
    response.once("close", () => {
      inFlight -= 1;
    });
    const page = Number(/^\/inbs\/I_list_(\d{3})_\d{8}\.html$/.exec(path)?.[1]);
    void gate.then(() => {
      if (failure !== undefined) response.writeHead(failure).end();
      else if (page >= 1 && page <= pageCount) response.setHeader("content-type", "text/html").end(listPage(page));
      else response.writeHead(404).end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
    get mostAtOnce() {
      return mostAtOnce;
    },
    hold() {
      let open = (): void => undefined;
      gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      return open;
    },
    fail: (...statuses) => void failures.push(...statuses),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function listPage(page: number): string {
  const rows = [1, 2, 3].map(
    (row) => `<tr><td><a href="1401${page}00${row}.pdf">Disclosure ${page}.${row}</a></td></tr>`,
  );
  return `<!doctype html><title>Page ${page}</title><table>${rows.join("")}</table>`;
}
