import { readFileSync } from "node:fs";

const MAX_URLS = 10_000;

/** Reads one URL a line; empty lines and those beginning with # are left out. Throws an `Error` with the number of the line that is wrong. */
export function readUrls(file: string): readonly URL[] {
  const lines = readLines(file);
  const urls = lines.flatMap((line, index) => {
    const text = line.trim();
    if (text === "" || text.startsWith("#")) return [];
    if (/^https?:\/\//i.test(text) && URL.canParse(text)) return [new URL(text)];
    throw new Error(`${file}, line ${index + 1}: must be a URL with http or https; got ${JSON.stringify(text)}.`);
  });
  if (urls.length === 0 || urls.length > MAX_URLS) {
    throw new Error(`${file} must have 1 to ${MAX_URLS} URLs; it has ${urls.length}.`);
  }
  return urls;
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n");
  } catch (error) {
    throw new Error(`The list of URLs ${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}
