/** What a client reports beside its answers. */
export interface ClientErrors {
  /** Begins to listen if it has not: only where somebody else does, since a client whose errors nobody hears says so itself. */
  listen(): void;
  /** The last error that the client has reported; undefined when it has been ready since, or reported none. */
  last(): unknown;
}

/** The part of an emitter that is called. */
interface Emitter {
  on(event: "error" | "ready", listener: (error?: unknown) => void): unknown;
  listenerCount(event: "error"): number;
}

/** Those who follow a client, for as long as it is there. */
const followers = new WeakMap<object, ClientErrors>();

/**
 * Follows the errors of a client that keeps what it is asked for while it tries to connect: the questions do not say why they are not answered.
 *
 * Two listeners at most for a client, `error` and `ready`, however many stores ask for it. They stay as long as the client.
 */
export function clientErrors(client: object): ClientErrors {
  let errors = followers.get(client);
  if (errors === undefined) {
    errors = follow(client);
    followers.set(client, errors);
  }
  return errors;
}

function follow(client: object): ClientErrors {
  let isListening = !isEmitter(client);
  let last: unknown;
  return {
    listen() {
      if (isListening || !isEmitter(client) || client.listenerCount("error") === 0) return;
      isListening = true;
      client.on("error", (error) => {
        last = error;
      });
      client.on("ready", () => {
        last = undefined;
      });
    },
    last: () => last,
  };
}

function isEmitter(client: object): client is Emitter {
  const { on, listenerCount } = client as Partial<Record<keyof Emitter, unknown>>;
  return typeof on === "function" && typeof listenerCount === "function";
}
