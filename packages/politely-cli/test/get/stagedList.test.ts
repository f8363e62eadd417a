import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { StagedList } from "../../src/get/stagedList.js";
import type { ListedUrl } from "../../src/list/urlList.js";

const before = process.env.TMPDIR;
let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "politely-staged-"));
  process.env.TMPDIR = folder;
});

afterEach(() => {
  if (before === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = before;
  rmSync(folder, { recursive: true });
});

async function* listed(count: number): AsyncIterable<ListedUrl> {
  for (let index = 0; index < count; index++) {
    yield { url: `https://a.org/${index}`, source: "argument", line: index + 1 };
  }
}

async function all(list: StagedList): Promise<string[]> {
  const urls: string[] = [];
  for await (const batch of list.batches()) {
    expect(batch.length).toBeLessThanOrEqual(1_000);
    urls.push(...batch);
  }
  return urls;
}

for (const count of [0, 19_999, 20_000, 50_001]) {
  it(`gives ${count} URLs back in their order, as often as it is asked, and leaves no file that a killed process would`, async () => {
    const list = await StagedList.read(listed(count));
    // Somebody who is killed now removes nothing.
    expect(readdirSync(folder)).toEqual([]);
    const urls = await all(list);
    expect(urls).toHaveLength(count);
    expect(urls.every((url, index) => url === `https://a.org/${index}`)).toBe(true);
    expect(await all(list)).toHaveLength(count);
    list.remove();
    list.remove();
  });
}
