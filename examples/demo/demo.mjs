// One site, two callers. Run it with `npm start`.
import { setTimeout as sleep } from "node:timers/promises";
import { politely } from "politely";
import { startSite } from "./site.mjs";

const REQUESTS = 30;

const site = await startSite({ limit: 5, periodMs: 1_000 });
const urls = Array.from({ length: REQUESTS }, (_, index) => `${site.url}/page/${index + 1}`);

console.log(`A small site at ${site.url} allows 5 requests a second and answers 429 to the rest.`);
console.log(`Two callers want the same ${REQUESTS} pages from it.\n`);

const naive = await visit("Without Politely", (url) => fetch(url));

// The first caller's requests leave the site's window before the second one begins.
await sleep(1_100);

console.log(`
The second caller does it in three lines:

  import { politely } from "politely";
  const polite = politely({ hosts: { "127.0.0.1": { window: "5/s", countFrom: "answer" } } });
  const response = await polite.fetch(url);

The first 5 pages go at once. ${REQUESTS} pages at 5 a second cannot take less than ${REQUESTS / 5 - 1} s.
`);

// Counting from the answer keeps the site's own count within 5, too, however long a request is on its way.
const polite = politely({ hosts: { "127.0.0.1": { window: "5/s", countFrom: "answer" } } });
const paced = await visit("With Politely", (url) => polite.fetch(url));

await polite.close();
site.close();

console.log("\nAs the site counted:\n");
console.log("                  answered  refused      took");
console.log(row("without Politely", naive));
console.log(row("with Politely", paced));
console.log("\nRead next: README.md, and this program in examples/demo/demo.mjs.");

/**
 * Asks for every page at once through `request`, and shows how it goes.
 *
 * @param {string} name
 * @param {(url: string) => Promise<Response>} request
 */
async function visit(name, request) {
  const begin = performance.now();
  let okCount = 0;
  let refusedCount = 0;
  await Promise.all(
    urls.map(async (url) => {
      const response = await request(url);
      await response.text();
      if (response.ok) okCount += 1;
      else refusedCount += 1;
      showProgress(name, okCount, refusedCount);
    }),
  );
  return { ...site.takeCounts(), tookMs: performance.now() - begin };
}

/**
 * Draws `#` for a page that came and `x` for one that was refused.
 *
 * @param {string} name
 * @param {number} okCount
 * @param {number} refusedCount
 */
function showProgress(name, okCount, refusedCount) {
  const doneCount = okCount + refusedCount;
  const bar = `${"#".repeat(okCount)}${"x".repeat(refusedCount)}`.padEnd(REQUESTS, ".");
  const line = `${name.padEnd(18)}${bar} ${okCount} answered, ${refusedCount} refused`;
  if (process.stdout.isTTY) {
    process.stdout.write(`\r${line}${doneCount === REQUESTS ? "\n" : ""}`);
  } else if (doneCount === REQUESTS) {
    console.log(line);
  }
}

/**
 * @param {string} name
 * @param {{ answered: number; refused: number; tookMs: number }} counted
 */
function row(name, { answered, refused, tookMs }) {
  const cells = [
    String(answered).padStart(8),
    String(refused).padStart(9),
    `${(tookMs / 1000).toFixed(2)} s`.padStart(10),
  ];
  return `  ${name.padEnd(16)}${cells.join("")}`;
}
