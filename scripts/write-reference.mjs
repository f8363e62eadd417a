// Writes the API reference, docs/api, from the doc comments of every public entry. `--check` writes nothing and says which
// pages are not what the source says. A warning, such as a link that leads nowhere or a type that is not exported, is a failure.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Application, ReflectionKind } from "typedoc";
import { publicEntries } from "./public-entries.mjs";
import { root } from "./run.mjs";

/** @typedef {Map<string, string>} Pages Text by file name. */

const reference = join(root, "docs", "api");
const scratch = mkdtempSync(join(tmpdir(), "politely-reference-"));
// typedoc looks for its options in the current folder.
process.chdir(root);
const pages = await makePages();
rmSync(scratch, { recursive: true, force: true });
process.exitCode = pages !== undefined && (process.argv.includes("--check") ? isCurrent(pages) : write(pages)) ? 0 : 1;

/**
 * One page for each entry, and the list of them. Undefined after a warning.
 *
 * @returns {Promise<Pages | undefined>}
 */
async function makePages() {
  const entries = publicEntries("politely");
  /** @type {Record<string, unknown>} The options of the Markdown plugin are not among the types of typedoc. */
  const options = {
    entryPoints: entries.map(({ source }) => source),
    out: scratch,
    pageTitleTemplates: { module: (/** @type {{ name: string }} */ { name }) => importName(name) },
  };
  const app = await Application.bootstrapWithPlugins(options);
  const points = app.getEntryPoints() ?? [];
  // A page is named after its entry, not after its file.
  const named = points.map((point) => {
    const entry = entries.find(({ source }) => source === point.sourceFile.fileName);
    return { ...point, displayName: entry === undefined ? point.displayName : pageName(entry.name) };
  });
  const project = app.converter.convert(named);
  app.validate(project);
  await app.generateOutputs(project);
  if (app.logger.hasErrors() || app.logger.hasWarnings()) {
    console.error("The reference was not written because of what is said above.");
    return undefined;
  }
  const made = readPages(scratch);
  for (const [name, text] of made) {
    // An entry that only does something has a title and nothing more.
    if (/^# .*\n?$/.test(text)) made.set(name, `${text.trim()}\n\nExports nothing: importing it is enough.\n`);
  }
  made.set("README.md", indexPage(project.getChildrenByKind(ReflectionKind.Module)));
  return made;
}

/**
 * The list of all entries with what they export, the root entry first.
 *
 * @param {readonly import("typedoc").DeclarationReflection[]} modules
 */
function indexPage(modules) {
  const rows = modules
    .map((module) => ({ name: importName(module.name), page: `${module.name}.md`, exports: exportsOf(module) }))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, page, exports }) => `| [\`${name}\`](${page}) | ${exports} |`);
  return [
    "# API reference",
    "",
    "Every entry of the package `politely`, with everything it exports. `npm run reference` writes these pages from the doc comments of the source.",
    "",
    "| Import from | To use |",
    "|---|---|",
    ...rows,
    "",
  ].join("\n");
}

/** @param {import("typedoc").DeclarationReflection} module */
function exportsOf(module) {
  const values = ReflectionKind.Function | ReflectionKind.Class | ReflectionKind.Variable;
  const names = module.getChildrenByKind(values).map(({ name }) => `\`${name}\``);
  return names.length > 0 ? names.join(", ") : "nothing: importing it is enough";
}

/** @param {Pages} made */
function write(made) {
  rmSync(reference, { recursive: true, force: true });
  mkdirSync(reference, { recursive: true });
  for (const [name, text] of made) writeFileSync(join(reference, name), text);
  console.log(`${made.size} pages written to docs/api.`);
  return true;
}

/** @param {Pages} made */
function isCurrent(made) {
  const present = existsSync(reference) ? readPages(reference) : new Map();
  const stale = [...new Set([...made.keys(), ...present.keys()])].filter(
    (name) => made.get(name) !== present.get(name),
  );
  if (stale.length > 0) {
    console.error(
      `Not what the source says: ${stale.map((name) => `docs/api/${name}`).join(", ")}. Run: npm run reference`,
    );
    return false;
  }
  console.log(`${made.size} pages of docs/api are what the source says.`);
  return true;
}

/**
 * @param {string} folder
 * @returns {Pages}
 */
function readPages(folder) {
  return new Map(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8").replaceAll(/ +$/gm, "")]),
  );
}

/**
 * `politely` for the root entry, else what follows `politely/`.
 *
 * @param {string} entry
 */
function pageName(entry) {
  return entry.replace(/^politely\//, "");
}

/** @param {string} page */
function importName(page) {
  return page === "politely" ? page : `politely/${page}`;
}
