// Checks that the documentation tells the truth. Every ```ts block is type-checked as a program of its own, and those marked
// `run` are run: where a ```text block follows, it is what the program must print. ```json and ```yaml blocks marked `policy` must pass
// `politely check`. Links must lead to a file and, behind a #, to one of its headings; each page of docs/ must be listed in docs/README.md. Pages
// and pictures that a script writes must be what it would write.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brokenLinks } from "./docLinks.mjs";
import { root, run, tool } from "./run.mjs";

/** @typedef {{ place: string; file: string; code: string; isRun: boolean; output: string | undefined }} Program */

// Inside node_modules, so that the programs find `politely` and Git does not find the programs.
const scratch = join(root, "node_modules", ".cache", "politely-docs");
const programs = documents().flatMap(programsOf);
const policies = documents().flatMap(policiesOf);

rmSync(scratch, { recursive: true, force: true });
mkdirSync(scratch, { recursive: true });
for (const { file, code } of programs) {
  writeFileSync(join(scratch, `${file}.mts`), `${code}\nexport {};\n`);
}
writeFileSync(
  join(scratch, "tsconfig.json"),
  JSON.stringify({
    extends: "../../../tsconfig.base.json",
    compilerOptions: { outDir: "out", types: ["node"], noUnusedLocals: false },
    include: ["*.mts"],
  }),
);

const toRun = programs.filter(({ isRun }) => isRun);
const isTyped = tool("tsc", ["-p", scratch]);
const isRight = isTyped && toRun.map(printsWhatItSays).every(Boolean);
const arePolicies = policies.map(isPolicy).every(Boolean);
const areLinked = complain(
  [...documents(), ...documents(["docs/api"])].flatMap((document) => brokenLinks(root, document)),
);
const areListed = complain(unlisted());
const areCurrent = ["scripts/write-pictures.mjs", "packages/politely/scripts/write-policy-reference.mjs"]
  .map((script) => run(process.execPath, [join(root, script), "--check"]))
  .every(Boolean);
console.log(
  `${programs.length} programs in the documentation, ${toRun.length} of them to be run, and ${policies.length} policies.`,
);
process.exit([isTyped, isRight, arePolicies, areLinked, areListed, areCurrent].every(Boolean) ? 0 : 1);

/**
 * The project's own Markdown files, by their path from its folder. Those of the API reference are not among them: their blocks are no programs.
 *
 * @param {readonly string[]} folders
 */
function documents(
  folders = ["", "docs", "docs/decisions", "packages/politely", "packages/politely-cli", "bench", ...examples()],
) {
  return folders
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => readdirSync(join(root, folder)).map((name) => join(folder, name)))
    .filter((path) => path.endsWith(".md"));
}

/** The folder of the examples and that of each of them. */
function examples() {
  const folders = readdirSync(join(root, "examples"), { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !["node_modules", "dist"].includes(entry.name),
  );
  return ["examples", ...folders.map(({ name }) => join("examples", name))];
}

/**
 * The fenced blocks of a document.
 *
 * @param {string} document
 */
function blocksOf(document) {
  const text = readFileSync(join(root, document), "utf8");
  return [...text.matchAll(/^```(\S+)([^\n]*)\n([\s\S]*?)^```$/gm)].map((match) => {
    const line = text.slice(0, match.index).split("\n").length;
    return {
      language: match[1] ?? "",
      mark: match[2]?.trim() ?? "",
      body: match[3] ?? "",
      place: `${document}:${line}`,
      file: `${document.replaceAll(/[^A-Za-z0-9]+/g, "-")}-${line}`,
    };
  });
}

/**
 * @param {string} document
 * @returns {Program[]}
 */
function programsOf(document) {
  const blocks = blocksOf(document);
  return blocks.flatMap(({ language, mark, body, place, file }, index) => {
    const next = blocks[index + 1];
    const isRun = mark === "run";
    const output = isRun && next?.language === "text" ? next.body : undefined;
    return language === "ts" ? [{ place, file, code: body, isRun, output }] : [];
  });
}

/** @param {string} document */
function policiesOf(document) {
  return blocksOf(document).filter(({ language, mark }) => mark === "policy" && ["json", "yaml"].includes(language));
}

/** @param {ReturnType<typeof policiesOf>[number]} policy */
function isPolicy({ place, file, language, body }) {
  const path = join(scratch, `${file}.${language}`);
  writeFileSync(path, body);
  const command = join(root, "packages", "politely-cli", "dist", "bin.js");
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, "check", path], {
    encoding: "utf8",
    timeout: 60_000,
  });
  if (status !== 0) console.error(`The policy at ${place} is none:\n${stdout}${stderr}`);
  return status === 0;
}

/** @param {Program} program */
function printsWhatItSays({ place, file, output }) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(scratch, "out", `${file}.mjs`)], {
    encoding: "utf8",
    timeout: 60_000,
  });
  if (status !== 0) {
    console.error(`The program at ${place} failed:\n${stderr}`);
    return false;
  }
  if (output !== undefined && stdout.trim() !== output.trim()) {
    console.error(`The program at ${place} should print\n${output}\nand printed\n${stdout}`);
    return false;
  }
  return true;
}

/** Pages of docs/ that its list of pages does not lead to. */
function unlisted() {
  const list = readFileSync(join(root, "docs", "README.md"), "utf8");
  return documents(["docs", "docs/decisions"])
    .map((path) => path.slice("docs/".length))
    .filter((path) => path !== "README.md" && !list.includes(`](${path})`))
    .map((path) => `docs/README.md does not list ${path}`);
}

/**
 * Says what is wrong, and whether nothing is.
 *
 * @param {readonly string[]} problems
 */
function complain(problems) {
  for (const problem of problems) console.error(problem);
  return problems.length === 0;
}
