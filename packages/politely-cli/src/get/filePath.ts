import { createHash } from "node:crypto";

/** Longer paths are not understood everywhere. In characters, `/` included. */
const MAX_PATH = 200;
const MAX_DIRECTORIES = 8;
const MAX_PLAIN = 80;
const MAX_STEM = 40;
/** Windows takes these for devices, whatever their ending. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/;
/** Files of the folder itself. */
const OWN = /^(index\.jsonl|(journal|limits)\.db(-(wal|shm|journal))?)$/;
const PLAIN_DIRECTORY = /^[a-z\d][a-z\d_-]*$/;
const PLAIN_FILE = /^[a-z\d_][a-z\d_.-]*\.[a-z\d]{1,10}$/;
const PLAIN_HOST = /^[a-z\d][a-z\d.-]*$/;

/**
 * Where the body of a URL is kept, relative to the folder, with `/`: `example.com/news/today.html`.
 *
 * The same URL always has the same path, two URLs never share one, not even where capitals do not count, and no file stands in the
 * way of a folder. That takes a `~` wherever a name would not do as it is:
 *
 * | URL | path |
 * |---|---|
 * | `https://example.com/` | `example.com/~index.html` |
 * | `https://example.com/about` | `example.com/about~page` |
 * | `https://example.com/a.html?x=1` | `example.com/a~` + 16 digits of a hash + `.html` |
 * | `https://example.com/v1.2/a.html` | `example.com/v1.2~d` + 12 digits + `/a.html` |
 * | `http://example.com:8080/a.html` | `example.com~http~8080/a.html` |
 *
 * At most 200 characters; what would be longer is `example.com/~long/` + 32 digits.
 */
export function filePath(url: string): string {
  const { protocol, hostname, port, pathname, search } = new URL(url);
  const host = hostDirectory(hostname, protocol, port);
  const segments = pathname.split("/").slice(1);
  const last = segments.pop() ?? "";
  const path = [host, ...directories(segments), fileName(last, search, url)].join("/");
  return path.length <= MAX_PATH ? path : `${host}/~long/${hash(url, 32)}`;
}

function hostDirectory(hostname: string, protocol: string, port: string): string {
  const isTaken = DEVICE.test(hostname) || OWN.test(hostname);
  const isPlain = PLAIN_HOST.test(hostname) && hostname.length <= MAX_PLAIN && !isTaken && !hostname.endsWith(".");
  const name = isPlain ? hostname : `${stem(hostname)}~d${hash(hostname, 12)}`;
  return `${name}${protocol === "http:" ? "~http" : ""}${port === "" ? "" : `~${port}`}`;
}

function directories(segments: readonly string[]): readonly string[] {
  if (segments.length <= MAX_DIRECTORIES) return segments.map(directory);
  const kept = segments.slice(0, MAX_DIRECTORIES - 1);
  return [...kept.map(directory), `~d${hash(segments.slice(MAX_DIRECTORIES - 1).join("/"), 16)}`];
}

function directory(segment: string): string {
  const isPlain = PLAIN_DIRECTORY.test(segment) && segment.length <= MAX_STEM && !DEVICE.test(segment);
  return isPlain ? segment : `${stem(segment)}~d${hash(segment, 12)}`;
}

function fileName(segment: string, search: string, url: string): string {
  if (search === "" && !url.endsWith("?")) {
    if (segment === "") return "~index.html";
    const isShort = segment.length <= MAX_PLAIN && !DEVICE.test(segment);
    if (isShort && PLAIN_FILE.test(segment)) return segment;
    if (isShort && PLAIN_DIRECTORY.test(segment)) return `${segment}~page`;
  }
  const [ending = ""] = /\.[a-z\d]{1,10}$/i.exec(segment) ?? [];
  const base = segment.slice(0, segment.length - ending.length);
  return `${stem(base)}~${hash(url, 16)}${ending.toLowerCase()}`;
}

/** What can be read of a name: lower case, nothing but letters, digits, `.`, `-` and `_`, at most 40 characters. */
function stem(name: string): string {
  const readable = name
    .toLowerCase()
    .replace(/[^a-z\d._-]+|\.{2,}/g, "_")
    .replace(/^[.-]+/, "_")
    .slice(0, MAX_STEM);
  return DEVICE.test(readable) ? `_${readable}` : readable;
}

function hash(text: string, digits: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, digits);
}
