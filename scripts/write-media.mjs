// Makes the pictures of the README from the real thing: `politely demo` in a terminal, and the page of `politely serve` in a browser.
// Needs the build, tmux and chromium (node scripts/servers.mjs tmux chromium). Arguments choose: terminal, dashboard. Takes three minutes.
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { shootDashboard } from "./media/dashboard.mjs";
import { record } from "./media/record.mjs";
import { terminalSvg } from "./media/terminal-svg.mjs";
import { root } from "./run.mjs";

const folder = join(root, "docs", "media");
const command = join(root, "packages", "politely-cli", "dist", "bin.js");
const size = { columns: 90, rows: 32 };
/** So large a picture may be. */
const boundBytes = 200_000;

/** @type {Record<string, () => Promise<string[]>>} */
const makers = { terminal: makeTerminal, dashboard: () => shootDashboard(command, folder) };

mkdirSync(folder, { recursive: true });
const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(makers);
for (const name of names) {
  const make = makers[name];
  if (make === undefined)
    throw new TypeError(`No picture is called ${name}. Known are ${Object.keys(makers).join(", ")}.`);
  for (const file of await make()) tellSize(file);
}

async function makeTerminal() {
  const frames = await record(`printf '$ politely demo\\n'; "${process.execPath}" "${command}" demo`, size);
  const file = join(folder, "terminal.svg");
  const title = "politely demo";
  const description =
    "Three local sites are called by a loop over fetch, which they refuse, and by polite.fetch, which they do not; the table at the end has what each site counted.";
  writeFileSync(file, terminalSvg(frames, { ...size, title, description }));
  return [file];
}

/** @param {string} file */
function tellSize(file) {
  const bytes = statSync(file).size;
  console.log(`${file.slice(root.length)}: ${(bytes / 1_000).toFixed(1)} kB`);
  if (bytes > boundBytes) {
    console.error(`That is more than ${boundBytes / 1_000} kB.`);
    process.exitCode = 1;
  }
}
