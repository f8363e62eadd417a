// One site, two callers. Run it with `npm start`.
import { setTimeout as sleep } from "node:timers/promises";
import { politely } from "politely";
import { startSite } from "./site.mjs";

const REQUESTS = 30;

const site = await startSite({ limit: 5, periodMs: 1_000 });
const urls = Array.from({ length: REQUESTS }, (_, index) => `${site.url}/page/${index + 1}`);

console.log(`A small site at ${site.url} allows 5 requests a second and answers 429 to the rest.`);
console.log(`Two callers want the same ${REQUESTS} pages from it.\n`);

const naive = await visit("Without Politely", (url) => get(url));

// The first caller's requests leave the site's window before the second one begins.
await sleep(1_100);

const polite = politely({
  hosts: {
    // Counting from the answer keeps the site's own count within 5, too, however long a request is on its way.
    "127.0.0.1": { window: "5/s", countFrom: "answer" },
  },
});
const paced = await visit("With Politely", (url) => polite.run(url, () => get(url)));

await polite.close();
site.close();

console.log("\nAs the site counted:\n");
console.log("                    pages    429s      took");
console.log(row("without Politely", naive));
console.log(row("with Politely", paced));

/** @param {string} url */
async function get(url) {
  const response = await fetch(url);
  await response.text();
  return response;
}

/**
 * Asks for every page at once through `request`, and shows how it goes.
 *
 * @param {string} name
 * @param {(url: string) => Promise<Response>} request
 */
async function visit(name, request) {
  const begin = performance.now();
  let doneCount = 0;
  await Promise.all(
    urls.map(async (url) => {
      await request(url);
      doneCount += 1;
      showProgress(name, doneCount);
    }),
  );
  return { ...site.takeCounts(), tookMs: performance.now() - begin };
}

/**
 * @param {string} name
 * @param {number} doneCount
 */
function showProgress(name, doneCount) {
  const line = `${name.padEnd(18)}${"#".repeat(doneCount).padEnd(REQUESTS, ".")} ${doneCount}/${REQUESTS}`;
  if (process.stdout.isTTY) {
    process.stdout.write(`\r${line}${doneCount === REQUESTS ? "\n" : ""}`);
  } else if (doneCount % 10 === 0) {
    console.log(line);
  }
}

/**
 * @param {string} name
 * @param {{ answered: number; refused: number; tookMs: number }} counted
 */
function row(name, { answered, refused, tookMs }) {
  const cells = [
    String(answered).padStart(7),
    String(refused).padStart(8),
    `${(tookMs / 1000).toFixed(2)} s`.padStart(10),
  ];
  return `  ${name.padEnd(16)}${cells.join("")}`;
}
