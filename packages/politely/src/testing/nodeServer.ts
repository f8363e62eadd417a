/** A request as `node:http` gives it: the part that is used. */
export interface ServedRequest {
  readonly method?: string;
  readonly url?: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly socket: { resetAndDestroy(): unknown; destroy(): unknown };
  resume(): unknown;
}

/** The answer to it: the part that is used. */
export interface ServedAnswer {
  sendDate: boolean;
  writeHead(status: number, headers?: Readonly<Record<string, string>>): { flushHeaders(): void };
  write(chunk: string): unknown;
  end(chunk?: string): unknown;
  on(event: "close", listener: () => void): unknown;
}

/** A server that listens. */
export interface RunningServer {
  readonly address: string;
  readonly port: number;
  /** Breaks what is open and frees the port. Calling it again changes nothing. */
  readonly close: () => Promise<void>;
}

interface HttpModule {
  readonly createServer: (answer: (request: ServedRequest, answer: ServedAnswer) => void) => Server;
}

interface Server {
  address(): { readonly address: string; readonly port: number };
  listen(port: number, host: string, listening: () => void): unknown;
  once(event: "error", listener: (error: unknown) => void): unknown;
  close(done: () => void): unknown;
  closeAllConnections(): void;
}

/** A name that only Node knows, loaded when it is needed: the rest of this entry runs where there is no Node. */
const nodeHttp: string = "node:http";

/** Serves HTTP on an address of this machine. Rejects with the system's error when the port is taken. */
export async function serveHttp(
  place: { readonly host: string; readonly port: number },
  answer: (request: ServedRequest, answer: ServedAnswer) => void,
): Promise<RunningServer> {
  const { createServer } = (await import(/* @vite-ignore */ nodeHttp)) as HttpModule;
  const server = createServer((request, response) => {
    request.resume();
    answer(request, response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(place.port, place.host, resolve);
  });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
    return closing;
  };
  return { ...server.address(), close };
}
