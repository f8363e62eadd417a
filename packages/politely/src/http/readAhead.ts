/** How much of a body that nobody reads is fetched, so that small ones never keep a place. */
export const READ_AHEAD_BYTES = 1_048_576;

/** What is told of a body. Each may be called more than once. It must not refer to the stream, or that is never collected. */
export interface BodyListener {
  /** The last byte has arrived. */
  arrived(): void;
  failed(error: unknown): void;
  /** Nobody wants the rest. */
  cancelled(): void;
}

type BodyReader = ReadableStreamDefaultReader<Uint8Array>;

/** Gives up bodies that nobody can read any more, so that their connections are free. */
const forgotten = new FinalizationRegistry<{ readonly reader: BodyReader; readonly listener: BodyListener }>(
  ({ reader, listener }) => {
    listener.cancelled();
    reader.cancel().catch(() => undefined);
  },
);

/**
 * The same bytes as a stream that fetches up to 1 MiB ahead of its reader, and tells when the last one has arrived.
 *
 * Beyond that it waits for its reader, so memory stays bounded however large the body is. A failure is told at once, also
 * while it waits. A stream that is dropped unread gives its connection up when it is collected.
 */
export function readAhead(body: ReadableStream<Uint8Array>, listener: BodyListener): ReadableStream<Uint8Array> {
  const isOfBytes = isByteStream(body);
  const reader = body.getReader();
  reader.closed.catch((error: unknown) => listener.failed(error));
  const source: UnderlyingByteSource = {
    type: "bytes",
    async pull(controller) {
      let chunk: Uint8Array | undefined;
      try {
        chunk = await nextChunk(reader);
      } catch (error) {
        listener.failed(error);
        throw error;
      }
      if (chunk === undefined) {
        forgotten.unregister(reader);
        listener.arrived();
        controller.close();
        controller.byobRequest?.respond(0);
      } else {
        controller.enqueue(isOfBytes ? ownBytes(chunk) : new Uint8Array(chunk));
      }
    },
    cancel(reason) {
      forgotten.unregister(reader);
      listener.cancelled();
      return reader.cancel(reason);
    },
  };
  const stream = new ReadableStream(source, { highWaterMark: READ_AHEAD_BYTES });
  forgotten.register(stream, { reader, listener }, reader);
  return stream;
}

/** The next bytes, none of them empty; undefined at the end. */
async function nextChunk(reader: BodyReader): Promise<Uint8Array | undefined> {
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return undefined;
    if (!ArrayBuffer.isView(value)) throw new TypeError("A body must be a stream of bytes (Uint8Array).");
    if (value.byteLength > 0) return value;
  }
}

function isByteStream(body: ReadableStream<Uint8Array>): boolean {
  try {
    body.getReader({ mode: "byob" }).releaseLock();
    return true;
  } catch {
    return false;
  }
}

/** A stream of bytes takes the memory of its chunks away from whoever made them, so one that shares it is copied. */
function ownBytes(chunk: Uint8Array): Uint8Array<ArrayBuffer> {
  const isOwn = chunk.byteLength === chunk.buffer.byteLength && chunk.buffer instanceof ArrayBuffer;
  return isOwn ? (chunk as Uint8Array<ArrayBuffer>) : new Uint8Array(chunk);
}
