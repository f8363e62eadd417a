/** One server-sent event. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

/** An event longer than this ends the stream: 2,000 rows have a tenth of it. */
const MAX_EVENT_CHARS = 16 * 1024 * 1024;

/**
 * Reads server-sent events from the body of an answer, until it ends. Comments and unknown fields are left out; ids and retry times are not used here.
 *
 * `onBytes` is called whenever something arrives, be it a comment. Rejects as the body does, and with a `RangeError` for an event without end.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void = () => undefined,
): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      onBytes();
      rest += decoder.decode(value, { stream: true });
      const parts = rest.split("\n\n");
      rest = parts.pop() ?? "";
      if (rest.length > MAX_EVENT_CHARS) throw new RangeError("The feed sent an event without end.");
      for (const part of parts) {
        const event = parseEvent(part);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

function parseEvent(text: string): ServerEvent | undefined {
  let event = "message";
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name === "event" && value !== undefined) event = value;
    if (name === "data" && value !== undefined) data.push(value);
  }
  return data.length === 0 ? undefined : { event, data: data.join("\n") };
}
