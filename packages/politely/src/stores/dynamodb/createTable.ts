import { StoreError } from "../../errors.js";
import type { DynamodbClient } from "../dynamodb.js";
import { failureOf } from "./failures.js";
import { keyName, ttlName } from "./item.js";
import { pause } from "./pause.js";

/** A table takes some seconds; a minute says that something is wrong. */
const readyWithinMs = 60_000;
const longestPauseMs = 2_000;

/** Creates the table unless it is there, waits until it can be used, and has DynamoDB remove what has expired. */
export async function createTable(client: DynamodbClient, table: string): Promise<void> {
  const abortSignal = AbortSignal.timeout(readyWithinMs);
  try {
    await unless("ResourceInUseException", () =>
      client.createTable(
        {
          TableName: table,
          BillingMode: "PAY_PER_REQUEST",
          AttributeDefinitions: [{ AttributeName: keyName, AttributeType: "S" }],
          KeySchema: [{ AttributeName: keyName, KeyType: "HASH" }],
        },
        { abortSignal },
      ),
    );
    for (
      let waitMs = 50;
      !(await isActive(client, table, abortSignal));
      waitMs = Math.min(waitMs * 2, longestPauseMs)
    ) {
      abortSignal.throwIfAborted();
      await pause(waitMs);
    }
    // It is an error to turn on what is on already, or is being turned on by somebody else.
    await unless("ValidationException", () =>
      client.updateTimeToLive(
        { TableName: table, TimeToLiveSpecification: { AttributeName: ttlName, Enabled: true } },
        { abortSignal },
      ),
    );
  } catch (error) {
    if (abortSignal.aborted) {
      throw new StoreError(
        `Table "${table}" could not be used within ${readyWithinMs} ms of createTable(). Look at it in the console of AWS.`,
        { cause: error },
      );
    }
    throw failureOf(error, table);
  }
}

async function isActive(client: DynamodbClient, table: string, abortSignal: AbortSignal): Promise<boolean> {
  // Right after it was created, a table may not be known everywhere.
  const known = await unless("ResourceNotFoundException", () =>
    client.describeTable({ TableName: table }, { abortSignal }),
  );
  const status = known?.Table?.TableStatus;
  return status === "ACTIVE" || status === "UPDATING";
}

/** What `task` resolves with, or undefined when it rejects with an error of that name. */
async function unless<Answer>(name: string, task: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await task();
  } catch (error) {
    if (error instanceof Error && error.name === name) return undefined;
    throw error;
  }
}
