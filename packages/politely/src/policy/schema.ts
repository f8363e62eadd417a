import { adaptiveUpsideDown, backoffUpsideDown, bucketTooLarge } from "./contradictions.js";
import { readHostPattern } from "./hostPattern.js";
import { controlCharacters, isName, maxNameLength, nameForm } from "./name.js";
import { collector, presets } from "./presets/index.js";
import { maxUnits } from "./rate.js";
import { bad, good, type Reading } from "./reading.js";
import type {
  ChoiceShape,
  DurationShape,
  Field,
  KeyShape,
  NumberShape,
  ObjectShape,
  Shape,
  TextShape,
} from "./shape.js";
import { showValue } from "./showValue.js";
import { reservedScopes } from "./target.js";

const flag: Shape = { kind: "flag" };
const longerThanZero: DurationShape = { kind: "duration" };
const anyTime: DurationShape = { kind: "duration", allowZero: true };
const anyWait: DurationShape = { kind: "duration", allowZero: true, allowInfinity: true };
const units: NumberShape = { kind: "number", isWhole: true, min: 1, max: maxUnits };

const grouping: ChoiceShape = { kind: "choice", options: ["host", "domain"] };

const headerText: TextShape = {
  kind: "text",
  what: "a text of one line, 1 to 1000 characters",
  maxLength: 1_000,
  pattern: "^[^\\p{Cc}]+$",
};

const timeZone: TextShape = {
  kind: "text",
  what: 'the name of a time zone such as "UTC" or "Asia/Tokyo"',
  maxLength: 100,
  pattern: "^[A-Za-z]",
  test: isTimeZone,
};

const backoffKind: ChoiceShape = { kind: "choice", options: ["none", "linear", "exponential"] };

const backoff: ObjectShape = {
  kind: "object",
  fields: {
    kind: { shape: backoffKind, isRequired: true, about: "How the steps grow: base × n, or base doubled each time." },
    base: { shape: longerThanZero, isRequired: true, about: "The first step." },
    max: { shape: longerThanZero, isRequired: true, about: "The longest step." },
    jitter: {
      shape: { kind: "number", isWhole: false, min: 0, max: 1 },
      about: "Lengthens each step by up to this part of itself, at random. Default 0.",
    },
  },
  checks: [backoffUpsideDown],
};

const quota: ObjectShape = {
  kind: "object",
  fields: {
    count: { shape: units, isRequired: true, about: "Units in one period." },
    per: {
      shape: { kind: "choice", options: ["hour", "day", "month"] },
      isRequired: true,
      about: "The period of the calendar after which the count begins again.",
    },
    timeZone: { shape: timeZone, about: "Whose calendar. Default UTC." },
  },
};

const adaptive: ObjectShape = {
  kind: "object",
  fields: {
    min: {
      shape: { kind: "rate", use: "bucket" },
      about: "Never slower than this. Default a 64th of full speed, and one a minute at least.",
    },
    max: {
      shape: { kind: "rate", use: "bucket" },
      about: "Never faster than this. Default: what the other limits allow.",
    },
  },
  checks: [adaptiveUpsideDown],
};

const window: Shape = { kind: "rate", use: "window" };

const limitFields: Readonly<Record<string, Field>> = {
  enabled: { shape: flag, about: "false turns the limits of this entry off. Default true." },
  minDelay: { shape: anyTime, about: "The least time between two starts. Default 0: none." },
  rate: { shape: { kind: "rate", use: "bucket" }, about: "A token bucket, full at the start. Default: none." },
  burst: { shape: units, needs: "rate", about: "How many units the bucket holds. Default 1." },
  window: {
    shape: { kind: "either", of: [window, { kind: "list", of: window, min: 1, max: 16 }] },
    about: "Exact sliding windows: at most so many starts in any span of that length. Default: none.",
  },
  quota: { shape: quota, about: "A budget that begins again on the calendar. Default: none." },
  concurrency: { shape: units, about: "How many may be in flight at once. Default: no bound." },
  countFrom: {
    shape: { kind: "choice", options: ["start", "answer"] },
    about: "Whether gap and windows run from a start or from its answer. Default start.",
  },
  backoff: {
    shape: { kind: "either", of: [backoffKind, backoff] },
    about:
      "How long to stay away after server errors and timeouts; exponential is 5, 10, 20, 40, 60 s. Default linear: 5, 10, … 30 s.",
  },
  cooldown: {
    shape: { kind: "either", of: [anyTime, { kind: "list", of: anyTime, min: 1, max: 64 }] },
    about: "How long to stay away after a 429 without Retry-After; a list is a ladder. Default 60 s.",
  },
  adaptive: {
    shape: { kind: "either", of: [flag, adaptive] },
    about: "Slow down by what the site answers and how long that takes, never above the other limits. Default false.",
  },
  maxWait: { shape: anyWait, about: "The longest a request may wait in its lane. Default: no bound; 0 means never." },
  maxQueue: {
    shape: { kind: "number", isWhole: true, min: 0, max: maxUnits, allowInfinity: true },
    about:
      "How many requests may wait; 0 means none. Default 100,000 for a host; no bound for an intent, a scope and global.",
  },
  permitTtl: { shape: longerThanZero, about: "With a store: lifetime of a place. Default 30 s." },
  maxHold: { shape: longerThanZero, about: "A permit not released by then gives its place back. Default 10 min." },
};

const limitChecks = [bucketTooLarge({ burst: "burst", rateOf: (entry) => entry.rate })];

/** What the limits of one entry look like. */
export const limitsShape: ObjectShape = { kind: "object", name: "limits", fields: limitFields, checks: limitChecks };

const intentKeys: KeyShape = {
  what: "intent",
  read: readName,
  pattern: `^[^${controlCharacters}]{1,${maxNameLength}}$`,
};

const hostLimitsShape: ObjectShape = {
  kind: "object",
  name: "hostLimits",
  fields: {
    ...limitFields,
    intents: {
      shape: { kind: "record", of: limitsShape, keys: intentKeys },
      about: "Further limits, by what a request is for; they come on top of the host's own. Default: none.",
    },
  },
  checks: limitChecks,
};

const hostKeys: KeyShape = { what: "host", read: readHostName, pattern: "^(\\*\\.)?[^*\\s/?#\\\\@]+$" };
const scopeKeys: KeyShape = {
  what: "scope",
  read: readScope,
  pattern: `^[^*${controlCharacters}]{0,${maxNameLength}}\\*?$`,
};

const http: ObjectShape = {
  kind: "object",
  fields: {
    userAgent: {
      shape: headerText,
      about:
        "Names the program: the User-Agent of requests that have none of their own. Default: the client's own, or politely where there is a contact.",
    },
    contact: {
      shape: headerText,
      about: "How a site can reach you: an e-mail address or a page, put behind the User-Agent. Default: none.",
    },
    robots: {
      shape: {
        kind: "either",
        of: [
          flag,
          {
            kind: "object",
            fields: {
              userAgent: {
                shape: headerText,
                about: "The name to look for in robots.txt. Default: the first word of http.userAgent.",
              },
              maxAge: { shape: anyTime, about: "How long a robots.txt is kept, at most a day. Default a day." },
            },
          },
        ],
      },
      about: "Whether robots.txt is obeyed. Default false.",
    },
    retry: {
      shape: {
        kind: "object",
        fields: {
          attempts: {
            shape: { kind: "number", isWhole: true, min: 1, max: 100 },
            isRequired: true,
            about: "How often a request is sent at most, the first time included.",
          },
          methods: {
            shape: {
              kind: "list",
              of: { kind: "text", what: 'an HTTP method such as "GET"', maxLength: 32, pattern: "^[A-Za-z-]+$" },
              min: 1,
              max: 32,
            },
            about: "Which methods may be sent again. Default the safe ones: GET, HEAD, OPTIONS, TRACE.",
          },
          maxWait: {
            shape: anyWait,
            about:
              "The longest wait before a request is sent again; beyond it the last answer is returned. Default: no bound.",
          },
          delay: {
            shape: anyTime,
            about: "The least wait before the first repetition; it doubles each time, up to a minute. Default 1 s.",
          },
          jitter: {
            shape: { kind: "number", isWhole: false, min: 0, max: 1 },
            about: "Lengthens that wait by up to this part of itself, at random. Default 0.25.",
          },
          budget: {
            shape: {
              kind: "object",
              fields: {
                share: {
                  shape: { kind: "number", isWhole: false, min: 0, max: 100 },
                  about: "Repetitions for each request of the host. Default 0.2.",
                },
                perMinute: {
                  shape: { kind: "number", isWhole: false, min: 0, max: 1_000_000 },
                  about: "Repetitions a minute on top of that. Default 10.",
                },
              },
            },
            about: "How many repetitions a host gets. Default: as its fields say.",
          },
        },
      },
      about: "Whether failed requests are sent again. Default: never.",
    },
    maxCrawlDelay: {
      shape: anyTime,
      about: "A Crawl-delay or Request-rate that asks for more than this between starts counts as this. Default 60 s.",
    },
  },
};

const presetNames: ChoiceShape = {
  kind: "choice",
  options: [...presets.map(({ id }) => id), collector.id],
  what: "the name of a preset",
  where: "politely/presets has the list",
};

/** What a policy looks like: the one definition behind validation and the JSON Schema. */
export const policyShape: ObjectShape = {
  kind: "object",
  inner: "default",
  fields: {
    $schema: {
      shape: { kind: "text", what: "the address of a JSON Schema", maxLength: 2_048, pattern: "" },
      about: "The address of this schema, for editors; it changes nothing. Default: none.",
    },
    default: { shape: limitsShape, about: "Hosts that are not named. Default: rate 1/s." },
    hosts: {
      shape: { kind: "record", of: hostLimitsShape, keys: hostKeys },
      about:
        'By host name; "*.x.org" is for its subdomains, each on its own. The most specific entry wins, and replaces default whole. Default: none.',
    },
    global: { shape: limitsShape, about: "Over everything together. Default: none." },
    scopes: {
      shape: { kind: "record", of: limitsShape, keys: scopeKeys },
      about:
        'Taken too when a target names them; "proxy:*" is for every name with that beginning, each on its own. Default: none.',
    },
    groupBy: {
      shape: { kind: "either", of: [grouping, { kind: "function" }] },
      about: "What counts as one key: a host, or everything under one registrable domain. Default host.",
    },
    localhost: {
      shape: { kind: "choice", options: ["unlimited", "limited"] },
      about: "Whether requests to this machine are paced. Default unlimited, unless hosts names it.",
    },
    presets: {
      shape: {
        kind: "either",
        of: [
          { kind: "flag", onlyTrue: true },
          { kind: "list", of: presetNames, min: 0, max: 1_000 },
        ],
      },
      about:
        "Known sites' published limits: true for all but the uncertain ones, or their names. Your own entry beats a preset. Default: none.",
    },
    http: { shape: http, about: "How HTTP requests are made. Default: as its fields say." },
  },
};

/** Reads a key of `scopes`: a name, or the beginning of names and `*`. */
export function readScope(key: string): Reading<string> {
  if (key.slice(0, -1).includes("*")) return bad(`must have its * at the end, as in "proxy:*"; got ${showValue(key)}`);
  if (reservedScopes.includes(key))
    return bad(`must not be one of ${reservedScopes.join(", ")}; got ${showValue(key)}`);
  return readName(key);
}

function readName(key: string): Reading<string> {
  return isName(key) ? good(key) : bad(`must be a name ${nameForm}; got ${showValue(key)}`);
}

/** Reads a key of `hosts` and gives the form in which it is compared. */
export function readHostName(key: string): Reading<string> {
  const pattern = readHostPattern(key);
  return pattern.ok ? good(pattern.value.name) : pattern;
}

/** Asks the calendar of the machine, which knows the IANA names. Newer engines take offsets such as +09:00 too; those are no names. */
function isTimeZone(text: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: text });
    return true;
  } catch {
    return false;
  }
}
