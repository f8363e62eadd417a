import type { Flight } from "./flight.js";
import { READ_AHEAD_BYTES, UnreadBody } from "./unreadBody.js";

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** Gives up bodies that nobody can read any more, so that their connections are free. */
const forgotten = new FinalizationRegistry<{ readonly reader: Reader; readonly flight: Flight }>(
  ({ reader, flight }) => {
    flight.done();
    reader.cancel().catch(() => undefined);
  },
);

/**
 * The same bytes as a stream that fetches up to 1 MiB ahead of its reader, and ends `flight` with the last one.
 *
 * Beyond that it waits for its reader, so memory stays bounded however large the body is; after 5 s without a reader the
 * place is given back. A stream that is dropped unread gives its connection up when it is collected.
 */
export function readAhead(body: ReadableStream<Uint8Array>, flight: Flight): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const unread = new UnreadBody(flight);
  reader.closed.catch((error: unknown) => flight.failed(error));
  const failedBy = (error: Error): Error => {
    flight.failed(error);
    return error;
  };
  const source: UnderlyingDefaultSource<Uint8Array> = {
    async pull(controller) {
      unread.resumed();
      const { done, value } = await reader.read();
      if (!done) {
        if (!ArrayBuffer.isView(value)) throw failedBy(new TypeError("A body must be a stream of bytes (Uint8Array)."));
        controller.enqueue(value);
        if ((controller.desiredSize ?? 0) <= 0) unread.paused();
        return;
      }
      forgotten.unregister(reader);
      flight.done();
      controller.close();
    },
    cancel(reason) {
      forgotten.unregister(reader);
      flight.done();
      return reader.cancel(reason);
    },
  };
  const stream = new ReadableStream(source, new ByteLengthQueuingStrategy({ highWaterMark: READ_AHEAD_BYTES }));
  forgotten.register(stream, { reader, flight }, reader);
  return stream;
}
