// @ts-check
import { ensure, median } from "../harness/timing.mjs";
import { politely } from "./contenders.mjs";

/** What most answers of an API carry besides. */
const USUAL = {
  date: "Tue, 14 Nov 2023 22:13:20 GMT",
  "content-type": "application/json; charset=utf-8",
  "content-length": "1234",
  connection: "keep-alive",
  server: "nginx",
  "cache-control": "private, max-age=60, s-maxage=60",
  vary: "Accept, Authorization, Cookie",
  etag: 'W/"abcdef0123456789"',
  "x-request-id": "C0FF:EE12:34567:89ABC:DEF01234",
  "strict-transport-security": "max-age=31536000; includeSubdomains; preload",
  "x-content-type-options": "nosniff",
  "content-encoding": "gzip",
};

/** @type {Record<string, { fields: Record<string, string>; remaining: number }>} */
const ANSWERS = {
  none: { fields: {}, remaining: -1 },
  ietf: { fields: { ratelimit: '"default";r=50;t=30', "ratelimit-policy": '"default";q=100;w=60' }, remaining: 50 },
  vendor: {
    fields: {
      "x-ratelimit-limit-requests": "3500",
      "x-ratelimit-limit-tokens": "90000",
      "x-ratelimit-remaining-requests": "3499",
      "x-ratelimit-remaining-tokens": "89990",
      "x-ratelimit-reset-requests": "17ms",
      "x-ratelimit-reset-tokens": "6m0s",
    },
    remaining: 3499,
  },
};

/** @type {Record<string, (fields: Record<string, string>) => unknown>} */
const FORMS = {
  headers: (fields) => new Headers(fields),
  record: (fields) => ({ ...fields }),
  raw: (fields) => Object.entries(fields).flat(),
};

/** So many answers are made at a time, outside of what is measured: a `Headers` object sorts itself when it is first walked over. */
const BATCH = 50;
const WALL_MS = 1_700_000_000_000;

const contenders = [
  politely,
  { name: "politely, plain record", rival: "politely", options: { form: "record" } },
  { name: "politely, raw list", rival: "politely", options: { form: "raw" } },
  { name: "bare walk over Headers", rival: "bare", options: { isBare: true } },
];

/** @type {import("./types.d.ts").Measure} */
export const headers = {
  name: "headers",
  rows: [
    row("none", "no rate headers", 2),
    row("ietf", "IETF: RateLimit and RateLimit-Policy", 5),
    row("vendor", "vendor: two buckets in six fields", 5),
  ],

  async run(_rival, size, options) {
    const { answer } = /** @type {{ answer: string }} */ (/** @type {unknown} */ (size));
    const { form = "headers", isBare = false } = /** @type {{ form?: string; isBare?: boolean }} */ (options);
    const { fields, remaining } = ANSWERS[answer];
    const read = isBare ? walk : await reader(remaining);
    const all = { ...USUAL, ...fields };
    const make = () => FORMS[form](all);
    const times = [];
    for (let i = 0; i <= size.samples; i++) times.push(microsecondsPerAnswer(read, make, size.count));
    // The first is for the compiler.
    return { us: median(times.slice(1)) };
  },
};

/** @param {string} answer @param {string} title @param {number} goal */
function row(answer, title, goal) {
  return {
    id: `headers-${answer}`,
    title: `reading the headers of an answer: 12 usual ones, ${title}`,
    metrics: [{ key: "us", title: "µs per answer", digits: 2 }],
    contenders,
    params: { answer, count: 100_000, samples: 5 },
    quick: { count: 40_000, samples: 3 },
    rounds: 3,
    goals: [{ text: `under ${goal} µs`, metric: "us", atMost: goal }],
  };
}

/**
 * The median over the batches: a batch is a tenth of a millisecond, so that most of them are not interrupted.
 *
 * @param {(headers: unknown) => number} read
 * @param {() => unknown} make
 * @param {number} count
 */
function microsecondsPerAnswer(read, make, count) {
  const times = [];
  let kept = 0;
  for (let done = 0; done < count; done += BATCH) {
    const answers = Array.from({ length: BATCH }, make);
    const startMs = performance.now();
    for (const answer of answers) kept += read(answer);
    times.push(((performance.now() - startMs) * 1000) / BATCH);
  }
  ensure(kept !== 0, "nothing was read");
  return median(times);
}

/**
 * What the limiter reads of each answer. It is not exported, so that it is loaded from where it is compiled to.
 *
 * @param {number} remaining
 */
async function reader(remaining) {
  const place = new URL("../../packages/politely/dist/http/readAnswer.js", import.meta.url).href;
  /** @type {{ readAnswer: (headers: unknown, wallMs: number, status: number) => { remaining: number } }} */
  const { readAnswer } = await import(place);
  const found = readAnswer(FORMS.headers({ ...USUAL, ...ANSWERS.ietf.fields }), WALL_MS, 200).remaining;
  ensure(found === ANSWERS.ietf.remaining, `read ${found} remaining, ${ANSWERS.ietf.remaining} were sent`);
  return (/** @type {unknown} */ headers) => {
    const read = readAnswer(headers, WALL_MS, 200).remaining;
    if (read !== remaining) throw new Error(`read ${read} remaining, ${remaining} were sent`);
    return read;
  };
}

/** The least that finds fields whose names are not known before. @param {unknown} headers */
function walk(headers) {
  let length = 0;
  for (const [name] of /** @type {Headers} */ (headers)) length += name.length;
  return length;
}
