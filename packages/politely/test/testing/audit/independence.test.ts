import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

it("shares no code with the engine that it judges", () => {
  const folder = fileURLToPath(new URL("../../../src/testing/audit/", import.meta.url));
  const imports = readdirSync(folder).flatMap((file) =>
    [...readFileSync(folder + file, "utf8").matchAll(/from "([^"]+)"/g)].map((match) => match[1]),
  );
  const outside = [...new Set(imports.filter((specifier) => !specifier.startsWith("./")))].toSorted();
  expect(outside).toEqual(["../../policy/compile.js", "../../policy/duration.js", "../../policy/types.js"]);
});
