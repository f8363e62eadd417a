import { readHostPattern } from "./hostPattern.js";
import { anyTime, anyWait, flag, limitChecks, limitFields, limitsShape } from "./limitsShape.js";
import { controlCharacters, isName, maxNameLength, nameForm } from "./name.js";
import { collector, presets } from "./presets/index.js";
import { bad, good, type Reading } from "./reading.js";
import type { ChoiceShape, KeyShape, ObjectShape, TextShape } from "./shape.js";
import { showValue } from "./showValue.js";
import { reservedScopes } from "./target.js";

const grouping: ChoiceShape = { kind: "choice", options: ["host", "domain"] };

const headerText: TextShape = {
  kind: "text",
  what: "a text of one line, 1 to 1000 characters, all of them in Latin-1 (a header carries no others)",
  maxLength: 1_000,
  pattern: "^[\\u0020-\\u007e\\u00a0-\\u00ff]+$",
};

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
  pattern: `^(?!(${reservedScopes.join("|")})?$)(?!.{${maxNameLength + 1}})[^*${controlCharacters}]*\\*?$`,
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
    refusal: {
      shape: { kind: "choice", options: ["error", "response"] },
      about: "What `fetch` gives when the limiter refuses a request: its error, or a 429 of our own. Default error.",
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
