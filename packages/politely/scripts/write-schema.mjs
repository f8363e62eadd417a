// Writes schema/policy.schema.json from the built library. Run it after a build; a test says when it is due.
import { mkdir, writeFile } from "node:fs/promises";
import { maxDurationUs } from "../dist/core/rule.js";
import { durationPattern } from "../dist/policy/duration.js";
import { ratePattern } from "../dist/policy/rate.js";
import { policyShape } from "../dist/policy/schema.js";
import { policyJsonSchema } from "./policySchema.mjs";

const folder = new URL("../schema/", import.meta.url);
const schema = policyJsonSchema({ policyShape, durationPattern, ratePattern, maxDurationUs });
await mkdir(folder, { recursive: true });
await writeFile(new URL("policy.schema.json", folder), `${JSON.stringify(schema, null, 2)}\n`);
