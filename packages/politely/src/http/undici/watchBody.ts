/** The part of a Node stream that is called here. */
interface Emitter {
  on(event: "error", listener: (error: unknown) => void): unknown;
  off(event: "error", listener: (error: unknown) => void): unknown;
}

/**
 * Calls `onError` when the body of a waiting request fails. The returned function ends that.
 *
 * undici listens to a stream from the moment it has it. Until then an error nobody listens to would end the process.
 * Bodies that are no Node stream do nothing before they are read.
 */
export function watchBody(body: unknown, onError: (error: unknown) => void): () => void {
  if (!isEmitter(body)) return () => undefined;
  body.on("error", onError);
  return () => body.off("error", onError);
}

function isEmitter(value: unknown): value is Emitter {
  if (typeof value !== "object" || value === null || !("on" in value) || !("off" in value)) return false;
  return typeof value.on === "function" && typeof value.off === "function";
}
