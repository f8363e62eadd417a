import fc, { type Arbitrary } from "fast-check";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

const policies: readonly Json[] = [
  { default: { rate: { count: 0.5, per: "1s" }, burst: 5, window: ["60/min", "1/3s"], minDelay: 0, maxWait: "1s" } },
  { default: { quota: { count: 5, per: "day", timeZone: "Asia/Tokyo" }, cooldown: ["10s", 500], backoff: "none" } },
  {
    global: {
      backoff: { kind: "linear", base: "1s", max: "2 min", jitter: 0.5 },
      adaptive: { min: "1/h", max: "1/s" },
    },
  },
  {
    hosts: {
      "*.x.org": { intents: { search: { window: "10/min" } }, maxHold: "1h" },
      "x.org:8443": { enabled: false },
    },
  },
  { scopes: { "proxy:*": { concurrency: 1 }, key: { maxQueue: 5 } }, groupBy: "host", presets: ["arxiv"] },
  { localhost: "limited", http: { robots: { maxAge: "1d" }, retry: { attempts: 3, methods: ["GET"], delay: "1s" } } },
];

const oddValues: readonly Json[] = [
  null,
  true,
  false,
  0,
  1,
  -1,
  1.5,
  1e-7,
  5e-324,
  1e12,
  1e13,
  1e300,
  2 ** 53,
  36_525 * 86_400_000,
  "",
  " ",
  "0s",
  "1s",
  "1 s",
  "1S",
  "1min",
  "36525d",
  "36526d",
  "1e3s",
  ".5s",
  "5.s",
  "-1s",
  "1s\n",
  "Infinity",
  "1/s",
  "1 / s",
  "60/minutes",
  "0.5/s",
  "1/0s",
  "0/s",
  "1e3/s",
  "1/.5s",
  "1/36526d",
  "0.333333333333333/s",
  "UTC",
  "+01:00",
  "day",
  "host",
  "limited",
  "linear",
  "answer",
  "x.org",
  "\ud800",
  "☃",
  "a".repeat(2100),
  [],
  ["1s"],
  ["1/s"],
  [[]],
  [null],
  Array<Json>(17).fill("1/s"),
  Array<Json>(65).fill("1s"),
  {},
  { count: 1 },
  { count: 1, per: "1s" },
  { count: "1", per: "1s" },
  { count: 1, per: 1, more: 1 },
  { kind: "none" },
  { kind: "linear", base: "1h", max: "1s" },
  { min: "2/s", max: "1/s" },
];

const oddNames: readonly string[] = [
  "",
  " ",
  "*",
  "*.x.org",
  "X.org",
  "a.*",
  "x.org:80",
  "x.org:99999",
  "::1",
  "*.1.2.3.4",
  "1",
  "https://x.org",
  "x..org",
  ".x.org",
  "x.org.",
  "_a.x.org",
  "bücher.de",
  "xn--a",
  "a\u00ad",
  "\u200b",
  "%41.org",
  "a|b",
  "[",
  "💩.la",
  "host",
  "rate",
  "proxy:**",
  "a\nb",
  "\u0000",
  "\u007f",
  "__proto__",
  "constructor",
  "a".repeat(201),
  "a".repeat(64),
  "minDelay",
  "intents",
  "default",
  "window",
  "zebra",
];

/** A policy as a person might write it, with one or two places made odd: another value, another name, or nothing. */
export const anyChangedPolicy: Arbitrary<object> = fc
  .tuple(fc.constantFrom(...policies), fc.array(anyChange(), { minLength: 1, maxLength: 2 }))
  .map(([policy, changes]) => changes.reduce<Json>(changed, policy))
  .filter((policy) => typeof policy === "object" && policy !== null && !Array.isArray(policy)) as Arbitrary<object>;

interface Change {
  readonly place: number;
  readonly kind: "value" | "name" | "gone";
  readonly value: Json;
  readonly name: string;
}

function anyChange(): Arbitrary<Change> {
  return fc.record({
    place: fc.nat({ max: 40 }),
    kind: fc.constantFrom("value", "value", "name", "gone"),
    value: fc.constantFrom(...oddValues),
    name: fc.constantFrom(...oddNames),
  });
}

function changed(policy: Json, change: Change): Json {
  const copy = structuredClone(policy);
  const places = placesIn(copy);
  const place = places[change.place % places.length];
  if (place === undefined) return copy;
  const { inside, name } = place;
  const value = inside[name];
  if (change.kind === "value" || Array.isArray(inside)) {
    inside[name] = change.value;
    return copy;
  }
  delete inside[name];
  if (change.kind === "gone") return copy;
  // Also `__proto__`, as JSON does.
  Object.defineProperty(inside, change.name, { value, enumerable: true, configurable: true, writable: true });
  return copy;
}

interface Place {
  readonly inside: Record<string, Json>;
  readonly name: string;
}

function placesIn(value: Json): Place[] {
  if (typeof value !== "object" || value === null) return [];
  const inside = value as Record<string, Json>;
  return Object.keys(inside).flatMap((name) => [{ inside, name }, ...placesIn(inside[name])]);
}
