/** What the collector is told by its environment. */
export interface Settings {
  /** The site, without a path: `https://www.release.tdnet.info`. */
  readonly siteUrl: URL;
  /** Where the site can reach whoever runs this: an e-mail address or a page. Sent with every request. */
  readonly contact: string;
  /** The table of the limiter and the lock. Nothing else is in it. */
  readonly limitsTable: string;
  /** The table of what was collected. */
  readonly daysTable: string;
  /** How long the lock of a run that died keeps others out. */
  readonly lockSeconds: number;
  /** The most list pages that one run asks for. */
  readonly maxPages: number;
}

/** The environment is not fit to start with. Its message has every problem, so that one look is enough. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";

  constructor(readonly problems: readonly string[]) {
    super(
      `The collector cannot start, and asks nobody for anything:\n${problems.map((each) => `- ${each}`).join("\n")}`,
    );
  }
}

const isMailOrPage = matches(/^(?:[^\s@<>()]+@[^\s@<>()]+\.[^\s@<>()]+|https?:\/\/[^\s<>()]+)$/);
const isTable = matches(/^[\w.-]{3,255}$/);
const isRegion = matches(/^[a-z\d-]{3,30}$/);
const isSite = (text: string): boolean => /^https?:\/\/[^/?#@]+\/?$/.test(text) && URL.canParse(text);

/** Reads the environment of the function. Throws one `SettingsError` that names every variable which is missing or wrong. */
export function readSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  const problems: string[] = [];
  const text = (name: string, isFine: (value: string) => boolean, what: string): string => {
    const value = env[name] ?? "";
    if (value === "") problems.push(`${name} is missing: ${what}.`);
    else if (!isFine(value)) problems.push(`${name} must be ${what}; got ${JSON.stringify(value)}.`);
    return value;
  };
  const count = (name: string, usual: number, most: number): number => {
    const value = env[name] ?? String(usual);
    const isFine = /^\d{1,6}$/.test(value) && Number(value) >= 1 && Number(value) <= most;
    if (!isFine) problems.push(`${name} must be a whole number from 1 to ${most}; got ${JSON.stringify(value)}.`);
    return Number(value);
  };

  const site = text("SITE_URL", isSite, "the address of the site, https://host without a path");
  const contact = text("CONTACT", isMailOrPage, "an e-mail address or a page where the site can reach you");
  const limitsTable = text("LIMITS_TABLE", isTable, "the name of the table of the limiter and the lock");
  const daysTable = text("DAYS_TABLE", isTable, "the name of the table of what was collected");
  if (daysTable !== "" && daysTable === limitsTable) {
    problems.push(`LIMITS_TABLE and DAYS_TABLE are both "${daysTable}"; the limiter needs a table of its own.`);
  }
  // Lambda sets it. Without it the AWS client fails later, and says less.
  text("AWS_REGION", isRegion, "the region of the tables, eu-central-1 say");
  const lockSeconds = count("LOCK_SECONDS", 300, 3_600);
  const maxPages = count("MAX_PAGES", 15, 100);

  if (problems.length > 0) throw new SettingsError(problems);
  return { siteUrl: new URL(site), contact, limitsTable, daysTable, lockSeconds, maxPages };
}

function matches(pattern: RegExp): (text: string) => boolean {
  return (text) => pattern.test(text);
}
