import { expect, it } from "vitest";
import { readSettings, SettingsError } from "../src/settings.js";

const good = {
  SITE_URL: "https://www.release.tdnet.info",
  CONTACT: "collector@example.org",
  LIMITS_TABLE: "limits",
  DAYS_TABLE: "days",
  AWS_REGION: "ap-northeast-1",
};

it("needs five variables; a lock lives 300 s and a run asks for 15 pages unless told otherwise", () => {
  expect(readSettings(good)).toEqual({
    siteUrl: new URL("https://www.release.tdnet.info/"),
    contact: "collector@example.org",
    limitsTable: "limits",
    daysTable: "days",
    lockSeconds: 300,
    maxPages: 15,
  });
  expect(readSettings({ ...good, LOCK_SECONDS: "5", MAX_PAGES: "2" })).toMatchObject({ lockSeconds: 5, maxPages: 2 });
  expect(readSettings({ ...good, CONTACT: "https://example.org/collector" })).toMatchObject({
    contact: "https://example.org/collector",
  });
});

it("names all that is missing at once", () => {
  expect(problemsOf({})).toEqual([
    "SITE_URL is missing: the address of the site, https://host without a path.",
    "CONTACT is missing: an e-mail address or a page where the site can reach you.",
    "LIMITS_TABLE is missing: the name of the table of the limiter and the lock.",
    "DAYS_TABLE is missing: the name of the table of what was collected.",
    "AWS_REGION is missing: the region of the tables, eu-central-1 say.",
  ]);
});

it.each([
  ["SITE_URL", "www.release.tdnet.info"],
  ["SITE_URL", "ftp://www.release.tdnet.info"],
  ["SITE_URL", "https://www.release.tdnet.info/inbs"],
  ["SITE_URL", "https://me:secret@www.release.tdnet.info"],
  ["SITE_URL", "https://a b"],
  ["CONTACT", "us"],
  ["CONTACT", "collector@example.org\r\nX: y"],
  ["LIMITS_TABLE", "no spaces"],
  ["DAYS_TABLE", "limits"],
  ["AWS_REGION", "Frankfurt!"],
  ["LOCK_SECONDS", "0"],
  ["LOCK_SECONDS", "3601"],
  ["LOCK_SECONDS", "5min"],
  ["LOCK_SECONDS", ""],
  ["MAX_PAGES", "1.5"],
  ["MAX_PAGES", "101"],
])("refuses %s=%j with one problem that names it and says what it got", (name, value) => {
  const problems = problemsOf({ ...good, [name]: value });
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(name);
  expect(problems[0]).toContain(JSON.stringify(value));
});

function problemsOf(env: Readonly<Record<string, string>>): readonly string[] {
  try {
    readSettings(env);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}
