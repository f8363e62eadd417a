// Two triggers meet, on this machine: the schedule and a manual call, each in a process of its own, share a table and a site.
import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { openDynamodb } from "./local/dynamodb.js";
import { startSite } from "./local/site.js";
import { type Answer, startMachine } from "./local/startMachine.js";
import { createTables, localAws } from "./local/tables.js";

const program = fileURLToPath(new URL("local/machine.js", import.meta.url));
// A DynamoDB that was there before may have the tables of an earlier time.
const name = randomUUID();
const tables = { limitsTable: `limits-${name}`, daysTable: `days-${name}` };

const dynamodb = await openDynamodb().catch((error: Error) => {
  console.error(error.message);
  process.exit(1);
});
const site = await startSite({ pageCount: 6 });
await createTables(dynamodb.endpoint, tables);
console.log(`A stand-in for the site, with 6 list pages, is at ${site.url}, DynamoDB Local at ${dynamodb.endpoint}.`);
console.log("The schedule and a manual call start a run at the same moment, in two processes.\n");

const env = {
  ...localAws(dynamodb.endpoint),
  SITE_URL: site.url,
  CONTACT: "collector@example.org",
  LIMITS_TABLE: tables.limitsTable,
  DAYS_TABLE: tables.daysTable,
};
const triggers = ["schedule", "manual"] as const;
const machines = await Promise.all(triggers.map(() => startMachine({ program, env })));
const answers = await Promise.all(
  triggers.map(async (trigger, index) => {
    const answered = await machines[index].invoke(trigger, `request-${index + 1}`);
    console.log(`${trigger.padEnd(9)} ${sentence(answered)}`);
    return answered;
  }),
);

const [first] = site.arrivals;
const seconds = site.arrivals.map(({ atMs }) => ((atMs - first.atMs) / 1_000).toFixed(1));
console.log(`\nThe site saw ${site.arrivals.length} requests of "${first.userAgent}",`);
console.log(`after ${seconds.join(", ")} s: five at once, then one each two seconds.`);
const metrics = machines.flatMap(({ log }) => log).filter((line) => "_aws" in line);
console.log(`The functions wrote ${metrics.length} lines of metrics for CloudWatch. The one of the site:`);
console.log(JSON.stringify(metrics.find((line) => "Host" in line)));

await Promise.all(machines.map((machine) => machine.end()));
site.close();
dynamodb.stop();
const hasStatus = (status: number): boolean => answers.some(({ statusCode }) => statusCode === status);
process.exitCode = hasStatus(200) && hasStatus(409) ? 0 : 1;

function sentence({ statusCode, body = {}, error }: Answer): string {
  if (error !== undefined) return `failed: ${error}`;
  if (statusCode === 409) return `409  Already running: ${body.heldBy}.`;
  return `${statusCode}  ${String(body.day)}: ${String(body.documentCount)} documents on ${String(body.pageCount)} pages.`;
}
