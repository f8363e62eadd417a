import type { AddCommand } from "../main.js";
import { addAudit } from "./audit.js";
import { addCheck } from "./check.js";
import { addDemo } from "./demo.js";
import { addGet } from "./get.js";
import { addPlan } from "./plan.js";
import { addPresets } from "./presets.js";
import { addServe } from "./serve.js";

/** Every command, in the order of `--help`. */
export const commands: readonly AddCommand[] = [addGet, addPlan, addAudit, addCheck, addServe, addPresets, addDemo];
