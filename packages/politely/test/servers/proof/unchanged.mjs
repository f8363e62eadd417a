// A program that has never heard of Politely: asks every origin for many pages at once, and prints how often each answer came.
const [requestsEach, ...origins] = process.argv.slice(2);
const pages = Array.from({ length: Number(requestsEach) }, (_, page) => origins.map((origin) => `${origin}/${page}`));
const answers = pages.flat().map(ask);
/** @type {Record<string, number>} */
const counts = {};
for (const answer of await Promise.all(answers)) counts[answer] = (counts[answer] ?? 0) + 1;
console.log(JSON.stringify(counts));

/** @param {string} url */
async function ask(url) {
  try {
    const response = await fetch(url);
    await response.text();
    return String(response.status);
  } catch (error) {
    // What the limiter throws is the cause of what fetch throws.
    const { cause } = /** @type {{ cause?: { code?: string; message?: string } }} */ (error);
    return cause?.code ?? `${String(error)} (${cause?.message})`;
  }
}
