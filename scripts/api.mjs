// Compares the public types of the root entry with packages/politely/api/politely.api.md; `--update` writes that file anew.
import { tool } from "./run.mjs";

const isUpdate = process.argv.includes("--update");
const isSame = tool("api-extractor", [
  "run",
  "--config",
  "packages/politely/api/api-extractor.json",
  ...(isUpdate ? ["--local"] : []),
]);
if (!isSame && !isUpdate) {
  console.error(
    "The public types differ from packages/politely/api/politely.api.md. If that is meant, run: npm run api:update",
  );
}
process.exit(isSame ? 0 : 1);
