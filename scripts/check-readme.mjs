// Checks what the README says about itself: the program at its top, its pictures, and the versions it was tested with.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./run.mjs";

const text = readFileSync(join(root, "README.md"), "utf8");
const problems = [...programProblems(), ...pictureProblems(), ...versionProblems()];
for (const problem of problems) console.error(`README.md: ${problem}`);
process.exit(problems.length === 0 ? 0 : 1);

function programProblems() {
  const lines = text.split("\n").slice(0, 20);
  const end = lines.indexOf("```", lines.indexOf("```ts run"));
  return lines.includes("```ts run") && end >= 0 ? [] : ["there is no whole program before line 20."];
}

function pictureProblems() {
  const shown = [...text.matchAll(/(?:src|srcset)="([^"]+)"|!\[[^\]]*\]\(([^)]+)\)/g)].map(
    (match) => match[1] ?? match[2] ?? "",
  );
  const made = readdirSync(join(root, "docs", "media")).map((name) => `docs/media/${name}`);
  return [
    ...shown.filter((path) => !existsSync(join(root, path))).map((path) => `there is no ${path}. Run: npm run media`),
    ...made.filter((path) => !shown.includes(path)).map((path) => `${path} is not shown.`),
  ];
}

/** Every client and driver that is tested stands in the tables with the version that is installed. */
function versionProblems() {
  const { devDependencies } = JSON.parse(readFileSync(join(root, "packages/politely/package.json"), "utf8"));
  const tested = [
    "undici",
    "axios",
    "got",
    "ky",
    "ioredis",
    "redis",
    "pg",
    "postgres",
    "libsql",
    "@aws-sdk/client-dynamodb",
  ];
  const rows = text.split("\n").filter((line) => line.startsWith("| "));
  return tested
    .map((name) => `${name} ${devDependencies[name]}`)
    .filter((words) => !rows.some((row) => row.split(/[|,]/).some((part) => part.trim() === words)))
    .map((words) => `no table says that it is tested with ${words}.`);
}
