import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const program = fileURLToPath(new URL("../../../dist/tdnet-lambda/src/demo.js", import.meta.url));

it("the one command shows two triggers that meet: one run, and one that is told so", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 55_000 });
  expect(stdout).toMatch(/^(schedule|manual) +200 {2}\d{4}-\d\d-\d\d: 18 documents on 6 pages\.$/m);
  expect(stdout).toMatch(
    /^(schedule|manual) +409 {2}Already running: (schedule|manual call), request request-[12], since /m,
  );
  expect(stdout).toContain('The site saw 7 requests of "tdnet-collector/1.0 (+collector@example.org)"');
  expect(stdout).toContain("The functions wrote 3 lines of metrics for CloudWatch.");
});
