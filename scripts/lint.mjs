// Formatting and lint rules first, then the rules that need types.
import { tool } from "./run.mjs";

const isTidy = tool("biome", ["check", "--error-on-warnings", "."]);
const isSound = tool("oxlint", ["--type-aware", "--deny-warnings", "."]);
process.exit(isTidy && isSound ? 0 : 1);
