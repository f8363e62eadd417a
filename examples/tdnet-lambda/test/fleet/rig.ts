import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type LocalSite, startSite } from "../../src/local/site.js";
import { type Answer, type Machine, startMachine } from "../../src/local/startMachine.js";
import { createTables, localAws } from "../../src/local/tables.js";

/** The compiled stand-in for a Lambda execution environment. */
export const machineProgram = fileURLToPath(
  new URL("../../../dist/tdnet-lambda/src/local/machine.js", import.meta.url),
);

/** A site, two empty tables, and any number of machines that share them. */
export interface Scene extends AsyncDisposable {
  readonly site: LocalSite;
  /** The environment of a function that is set up well. The contact names the machine, so that the site can tell them apart. */
  env(machine: string): Record<string, string>;
  /** Starts a machine. `change` replaces variables of its environment; undefined removes one. */
  start(machine: string, change?: Readonly<Record<string, string | undefined>>, handler?: string): Promise<Machine>;
}

/** Sets a scene at the DynamoDB of `endpoint`. Whoever takes part is ended with it. */
export async function setScene(endpoint: string, pageCount: number): Promise<Scene> {
  const name = randomUUID();
  const tables = { limitsTable: `limits-${name}`, daysTable: `days-${name}` };
  await createTables(endpoint, tables);
  const site = await startSite({ pageCount });
  const machines: Machine[] = [];
  const env = (machine: string): Record<string, string> => ({
    ...localAws(endpoint),
    SITE_URL: site.url,
    CONTACT: `${machine}@example.org`,
    LIMITS_TABLE: tables.limitsTable,
    DAYS_TABLE: tables.daysTable,
  });
  return {
    site,
    env,
    async start(machine, change = {}, handler) {
      const given = Object.entries({ ...env(machine), ...change }).filter((entry): entry is [string, string] => {
        return entry[1] !== undefined;
      });
      const options = { program: machineProgram, env: Object.fromEntries(given) };
      const started = await startMachine(handler === undefined ? options : { ...options, handler });
      machines.push(started);
      return started;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(machines.map((machine) => machine.end()));
      site.close();
    },
  };
}

const againAfterMs = 200;
const maxTries = 300;

/** Invokes until the answer is not 409, with a pause of 200 ms, 300 times at most. Returns all answers. */
export async function invokeUntilRun(machine: Machine, requestId: string): Promise<Answer[]> {
  const answers: Answer[] = [];
  while (answers.length < maxTries) {
    const answer = await machine.invoke("manual", `${requestId}-${answers.length}`);
    answers.push(answer);
    if (answer.statusCode !== 409) return answers;
    await sleep(againAfterMs);
  }
  throw new Error(`${requestId} got no run in ${maxTries} tries.`);
}
