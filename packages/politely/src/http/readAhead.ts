/** How much of a body that nobody reads is fetched, so that small ones never keep a place. */
export const READ_AHEAD_BYTES = 1_048_576;

/** What is told of a body. Each may be called more than once. */
export interface BodyListener {
  /** The last byte has arrived. */
  arrived(): void;
  failed(error: unknown): void;
  /** Nobody wants the rest. */
  cancelled(): void;
}

/**
 * The same bytes as a stream that fetches up to 1 MiB ahead of its reader, and tells when the last one has arrived.
 *
 * Beyond that it waits for its reader, so memory stays bounded however large the body is.
 */
export function readAhead(body: ReadableStream<Uint8Array>, listener: BodyListener): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const source: UnderlyingByteSource = {
    type: "bytes",
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          listener.arrived();
          controller.close();
          controller.byobRequest?.respond(0);
        } else if (value.byteLength > 0) {
          controller.enqueue(ownBytes(value));
        }
      } catch (error) {
        listener.failed(error);
        throw error;
      }
    },
    cancel(reason) {
      listener.cancelled();
      return reader.cancel(reason);
    },
  };
  return new ReadableStream(source, { highWaterMark: READ_AHEAD_BYTES });
}

/** A stream of bytes takes the memory of its chunks away from whoever made them, so one that shares it is copied. */
function ownBytes(chunk: Uint8Array): Uint8Array<ArrayBuffer> {
  const isOwn = chunk.byteLength === chunk.buffer.byteLength && chunk.buffer instanceof ArrayBuffer;
  return isOwn ? (chunk as Uint8Array<ArrayBuffer>) : new Uint8Array(chunk);
}
