import type { Limits } from "../../../src/index.js";
import type { LogRecord, Server } from "../server.js";
import type { Asked, Client } from "./clients.js";

/** What one client got, and what arrived at each of its hosts, by arrival. */
export interface Flooded extends Asked {
  readonly name: string;
  readonly arrivals: readonly (readonly LogRecord[])[];
}

/** What every client does to its hosts. */
export interface Flood {
  readonly limits: Limits;
  readonly requestsEach: number;
}

/** Shares the hosts of `server` out among `clients` and lets all of them ask at the same time. */
export async function flood(server: Server, clients: readonly Client[], what: Flood): Promise<Flooded[]> {
  const each = server.hosts.length / clients.length;
  const shares = clients.map((client, index) => ({
    client,
    hosts: server.hosts.slice(index * each, (index + 1) * each),
  }));
  const asked = await Promise.all(
    shares.map(({ client, hosts }) => {
      const origins = hosts.map(({ origin }) => origin);
      const rules = Object.fromEntries(origins.map((origin) => [new URL(origin).host, what.limits]));
      return client.ask({ policy: { hosts: rules }, origins, requestsEach: what.requestsEach });
    }),
  );
  const log = await server.log();
  return shares.map(({ client, hosts }, index) => ({
    name: client.name,
    ...asked[index],
    arrivals: hosts.map(({ address }) => log.filter(({ host }) => host === address)),
  }));
}
