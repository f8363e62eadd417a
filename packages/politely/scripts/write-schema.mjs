// Writes schema/policy.schema.json from the built library. Run it after a build; a test says when it is due.
import { mkdir, writeFile } from "node:fs/promises";
import { policyJsonSchema } from "../dist/policy/jsonSchema.js";

const folder = new URL("../schema/", import.meta.url);
await mkdir(folder, { recursive: true });
await writeFile(new URL("policy.schema.json", folder), `${JSON.stringify(policyJsonSchema(), null, 2)}\n`);
