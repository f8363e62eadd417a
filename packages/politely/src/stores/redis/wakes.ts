/** The part of a client that wakes need: `duplicate` opens a second connection, for only one that does nothing else can subscribe. */
interface Duplicable {
  duplicate(): Subscriber;
}

interface Subscriber {
  on(event: "error", listener: () => void): unknown;
  on(event: "message", listener: (channel: string, message: string) => void): unknown;
  subscribe(channel: string, listener?: (message: string) => void): Promise<unknown>;
  /** node-redis connects when it is told to, and then takes the listener with `subscribe`. */
  connect?(): Promise<unknown>;
  destroy?(): unknown;
  disconnect(): unknown;
}

/** Whether a client can be listened with. */
export function canListen(client: object): client is Duplicable {
  return "duplicate" in client && typeof client.duplicate === "function";
}

/**
 * Calls `onWake` with what is published on a channel, until the returned function is called.
 *
 * Nothing fails where that is not possible: those who wait then look again by themselves.
 */
export function listen(client: Duplicable, channel: string, onWake: (asker: string) => void): () => void {
  const ignore = (): void => undefined;
  const isNodeRedis = "evalSha" in client;
  try {
    const own = client.duplicate();
    own.on("error", ignore);
    if (!isNodeRedis) own.on("message", (_, asker) => onWake(asker));
    const ready = isNodeRedis ? Promise.resolve(own.connect?.()) : Promise.resolve();
    ready.then(() => own.subscribe(channel, ...(isNodeRedis ? [onWake] : []))).catch(ignore);
    return () => {
      if (isNodeRedis && own.destroy !== undefined) own.destroy();
      else own.disconnect();
    };
  } catch {
    return ignore;
  }
}
