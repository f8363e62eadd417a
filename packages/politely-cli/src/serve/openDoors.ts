import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Service } from "./createService.js";
import { httpServer } from "./httpServer.js";
import { closeServer, listenAt, listenOn } from "./listening.js";
import { createProxy, type PacingProxy } from "./proxy/createProxy.js";
import type { ServeOptions } from "./serveOptions.js";
import type { ServiceLimiter } from "./serviceLimiter.js";

/** Where the service listens. */
export interface Doors {
  /** What they are, for people: addresses with what is there. */
  readonly addresses: readonly string[];
  /** Lets the proxy take nothing new and end what is under way, for so long. Does nothing where there is no proxy. */
  closeProxy(graceMs: number): Promise<void>;
  /** Closes all. Answers that are being written may end, for a second, unless it has to be at once. */
  close(isAtOnce: boolean): Promise<void>;
}

/** What is behind the doors. */
export interface Inside {
  readonly service: Service;
  readonly limiter: ServiceLimiter;
  readonly log: (line: string) => void;
}

type DoorOptions = Pick<
  ServeOptions,
  | "host"
  | "port"
  | "proxyPort"
  | "connectPorts"
  | "socket"
  | "token"
  | "allowedHosts"
  | "isPrivateAllowed"
  | "maxWaiting"
  | "isLoggingRequests"
>;

/** Connections beside those of waiting callers. */
const SPARE_CONNECTIONS = 1_000;
const PATIENCE_MS = 1_000;

/** Opens the port, the Unix socket and the proxy that are asked for: all of them, or none. */
export async function openDoors(options: DoorOptions, inside: Inside): Promise<Doors> {
  const { host, port, proxyPort, socket } = options;
  const addresses: string[] = [];
  const servers: Server[] = [];
  let proxy: PacingProxy | undefined;
  const close = async (isAtOnce: boolean): Promise<void> => {
    const patienceMs = isAtOnce ? 0 : PATIENCE_MS;
    await Promise.all([proxy?.close(), ...servers.map((server) => closeServer(server, patienceMs))]);
  };
  try {
    if (port !== undefined) {
      const server = apiServer(options, inside);
      servers.push(server);
      addresses.push(`API and page at ${await listenAt(server, host, port)}`);
    }
    if (socket !== undefined) {
      const server = socketServer(options, inside);
      servers.push(server);
      await listenOn(server, socket);
      addresses.push(`socket ${socket}`);
    }
    if (proxyPort !== undefined) {
      const made = proxyOf(options, inside, servers);
      addresses.push(`proxy at ${await listenAt(made.server, host, proxyPort)}`);
      proxy = made;
      inside.service.callers.countElsewhere(() => made.waitingCount);
    }
  } catch (error) {
    await close(true);
    throw error;
  }
  return { addresses, close, closeProxy: async (graceMs) => proxy?.close({ graceMs }) };
}

function apiServer({ maxWaiting }: DoorOptions, { service }: Inside): Server {
  return httpServer((request, response) => service.handle(request, response), {
    maxConnections: maxWaiting + SPARE_CONNECTIONS,
    onDrop: () => service.turnedAway.count("connections"),
  });
}

/** The same for a Unix socket, which has no name and no browser gets to: any `Host` will do there. */
function socketServer(options: DoorOptions, { service, ...rest }: Inside): Server {
  const handle: Service["handle"] = (request, response) => {
    request.headers.host = "localhost";
    service.handle(request, response);
  };
  return apiServer(options, { ...rest, service: { ...service, handle } });
}

function proxyOf(options: DoorOptions, { service, limiter, log }: Inside, servers: readonly Server[]): PacingProxy {
  const ownPorts = (): number[] =>
    servers.map((server) => server.address()).flatMap((at) => (isPort(at) ? [at.port] : []));
  return createProxy({
    limiter,
    allowPrivate: options.isPrivateAllowed,
    token: options.token,
    allowedHosts: options.allowedHosts,
    connectPorts: options.connectPorts,
    maxWaiting: options.maxWaiting,
    ownPorts,
    turnedAway: service.turnedAway,
    log,
    logRequest: options.isLoggingRequests ? log : undefined,
  });
}

function isPort(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === "object" && address !== null;
}
