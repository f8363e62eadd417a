// @ts-check
// What `politely get` is held against: fetches a list of URLs with undici, so many at a time, and writes each body to a file. Nothing else.
// Usage: node bareGet.mjs LIST FOLDER CONCURRENCY
import { mkdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Agent, request } from "undici";

const [list, folder, concurrency] = process.argv.slice(2);
const urls = readFileSync(list, "utf8").trim().split("\n");
mkdirSync(folder, { recursive: true });
const dispatcher = new Agent();
let next = 0;
const worker = async () => {
  while (next < urls.length) {
    const url = urls[next++];
    const { statusCode, body } = await request(url, { dispatcher });
    if (statusCode !== 200) throw new Error(`${url} answered ${statusCode}`);
    await writeFile(join(folder, url.slice(url.lastIndexOf("/") + 1)), await body.bytes());
  }
};
await Promise.all(Array.from({ length: Number(concurrency) }, worker));
await dispatcher.close();
