/** What a line of robots.txt is about, where it is something that is obeyed. */
export type Field = "user-agent" | "allow" | "disallow" | "crawl-delay" | "request-rate" | "visit-time";

/** One line that is obeyed. Texts have one character for each octet. */
export interface RobotsRecord {
  readonly field: Field;
  /** What follows the name, without the blanks around it; may be empty. */
  readonly value: string;
  /** Where it stands, from 1. */
  readonly line: number;
  /** The line without its comment and the blanks around it. */
  readonly text: string;
}

/** Names as they are compared: without case, blanks, hyphens and underscores. Misspellings seen in the wild count as what is meant. */
const fieldsByName: ReadonlyMap<string, Field> = new Map<string, Field>([
  ["useragent", "user-agent"],
  ["allow", "allow"],
  ["disallow", "disallow"],
  ["dissallow", "disallow"],
  ["dissalow", "disallow"],
  ["disalow", "disallow"],
  ["diasllow", "disallow"],
  ["disallaw", "disallow"],
  ["desallow", "disallow"],
  ["crawldelay", "crawl-delay"],
  ["requestrate", "request-rate"],
  ["visittime", "visit-time"],
]);

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/**
 * Gives the lines that are obeyed, in order. CR, LF and CRLF all end a line, and `#` starts a comment.
 *
 * Between name and value stands a colon; where it was forgotten a blank will do. Other lines are left out. Each octet is looked at a fixed
 * number of times.
 */
export function* readRecords(octets: string): Generator<RobotsRecord> {
  let line = 1;
  let start = 0;
  while (start < octets.length) {
    const end = lineEnd(octets, start);
    const record = readLine(octets.slice(start, end), line);
    if (record !== undefined) yield record;
    const isPair = octets.charCodeAt(end) === carriageReturn && octets.charCodeAt(end + 1) === lineFeed;
    start = end + (isPair ? 2 : 1);
    line++;
  }
}

function lineEnd(octets: string, start: number): number {
  let end = start;
  while (end < octets.length) {
    const code = octets.charCodeAt(end);
    if (code === lineFeed || code === carriageReturn) break;
    end++;
  }
  return end;
}

function readLine(whole: string, line: number): RobotsRecord | undefined {
  const hash = whole.indexOf("#");
  const text = trimBlanks(hash === -1 ? whole : whole.slice(0, hash));
  if (text === "") return undefined;
  const colon = text.indexOf(":");
  const field = colon === -1 ? undefined : fieldOf(text.slice(0, colon));
  if (field !== undefined) return { field, value: trimBlanks(text.slice(colon + 1)), line, text };
  return readWithoutColon(text, line);
}

/** `disallow /a` and `crawl delay 5`: a name of one word or two, then the value. */
function readWithoutColon(text: string, line: number): RobotsRecord | undefined {
  const words = /^([A-Za-z_-]{1,32})[ \t]+(?:([A-Za-z]{1,32})[ \t]+)?/.exec(text);
  if (words === null) return undefined;
  const [both, first, second] = words;
  const firstField = fieldOf(first);
  if (firstField !== undefined) return { field: firstField, value: trimBlanks(text.slice(first.length)), line, text };
  const field = second === undefined ? undefined : fieldOf(first + second);
  return field === undefined ? undefined : { field, value: trimBlanks(text.slice(both.length)), line, text };
}

function fieldOf(name: string): Field | undefined {
  return fieldsByName.get(name.replace(/[-_\s]/g, "").toLowerCase());
}

/** Without a regular expression, which would look at a long run of blanks once for each of them. */
function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/** Blank, tab, vertical tab and form feed. */
function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0b || code === 0x0c;
}
