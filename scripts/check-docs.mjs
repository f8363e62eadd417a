// Checks that the documentation tells the truth. Every ```ts block is type-checked as a program of its own, and those marked
// `run` are run: where a ```text block follows, it is what the program must print. Links to files must lead somewhere.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root, tool } from "./run.mjs";

/** @typedef {{ place: string; file: string; code: string; isRun: boolean; output: string | undefined }} Program */

// Inside node_modules, so that the programs find `politely` and Git does not find the programs.
const scratch = join(root, "node_modules", ".cache", "politely-docs");
const programs = documents().flatMap(programsOf);

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
const areLinked = documents().map(linksLeadSomewhere).every(Boolean);
console.log(`${programs.length} programs in the documentation, ${toRun.length} of them to be run.`);
process.exit(isTyped && isRight && areLinked ? 0 : 1);

/** The project's own Markdown files, by their path from its folder. Generated reports are not among them. */
function documents() {
  const folders = ["", "docs", "docs/decisions", "packages/politely", "packages/politely-cli", "bench", "examples"];
  return folders
    .flatMap((folder) => readdirSync(join(root, folder)).map((name) => join(folder, name)))
    .filter((path) => path.endsWith(".md"));
}

/**
 * @param {string} document
 * @returns {Program[]}
 */
function programsOf(document) {
  const text = readFileSync(join(root, document), "utf8");
  const blocks = [...text.matchAll(/^```(\S+)([^\n]*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    language: match[1],
    isRun: match[2]?.trim() === "run",
    body: match[3] ?? "",
    line: text.slice(0, match.index).split("\n").length,
  }));
  return blocks.flatMap(({ language, isRun, body, line }, index) => {
    const next = blocks[index + 1];
    const output = isRun && next?.language === "text" ? next.body : undefined;
    const file = `${document.replaceAll(/[^A-Za-z0-9]+/g, "-")}-${line}`;
    return language === "ts" ? [{ place: `${document}:${line}`, file, code: body, isRun, output }] : [];
  });
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

/** @param {string} document */
function linksLeadSomewhere(document) {
  const text = readFileSync(join(root, document), "utf8");
  const broken = [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)]
    .map((match) => match[1] ?? "")
    .filter((link) => !/^[a-z]+:/.test(link) && !existsSync(join(root, dirname(document), link)));
  for (const link of broken) {
    console.error(`${document}: there is no ${link}`);
  }
  return broken.length === 0;
}
