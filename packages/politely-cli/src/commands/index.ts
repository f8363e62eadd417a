import type { AddCommand } from "../main.js";

/** Every command, in the order of `--help`. */
export const commands: readonly AddCommand[] = [];
