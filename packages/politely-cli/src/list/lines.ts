/** A longer line is no line of a list: the file is something else. */
const MAX_LINE = 65_536;

/**
 * Cuts a stream of bytes or text into lines, and gives those of each piece together. A byte order mark and the ends of lines,
 * `\n` or `\r\n`, are left out; the last line needs none. Throws `RangeError` for a line of more than 65,536 characters.
 */
export async function* readLines(stream: AsyncIterable<unknown>): AsyncIterable<readonly string[]> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of stream) {
    const text = typeof piece === "string" ? piece : decoder.decode(piece as Uint8Array, { stream: true });
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE) {
      throw new RangeError(`a line has more than ${MAX_LINE} characters; a list has one URL a line`);
    }
    if (lines.length > 0) yield lines;
  }
  rest += decoder.decode();
  if (rest !== "") yield [rest];
}
