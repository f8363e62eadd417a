import { StoreError } from "../../errors.js";
import type { DynamodbClient } from "../dynamodb.js";
import { failureOf } from "./failures.js";
import { KEY, TTL } from "./item.js";
import { pause } from "./pause.js";

/** A table takes some seconds; a minute says that something is wrong. */
const READY_MS = 60_000;
const PAUSE_MOST_MS = 2_000;

/** Creates the table unless it is there, waits until it can be used, and has DynamoDB remove what has expired. */
export async function createTable(client: DynamodbClient, table: string): Promise<void> {
  const abortSignal = AbortSignal.timeout(READY_MS);
  const options = { abortSignal };
  const shape = {
    TableName: table,
    BillingMode: "PAY_PER_REQUEST" as const,
    AttributeDefinitions: [{ AttributeName: KEY, AttributeType: "S" as const }],
    KeySchema: [{ AttributeName: KEY, KeyType: "HASH" as const }],
  };
  const TimeToLiveSpecification = { AttributeName: TTL, Enabled: true };
  // Right after it was created, a table may not be known everywhere.
  const describe = () =>
    unless("ResourceNotFoundException", client.describeTable({ TableName: table }, options)).then(
      (known) => known?.Table?.TableStatus ?? "",
    );
  try {
    await unless("ResourceInUseException", client.createTable(shape, options));
    for (let waitMs = 50; !/^(ACTIVE|UPDATING)$/.test(await describe()); waitMs = Math.min(waitMs * 2, PAUSE_MOST_MS)) {
      abortSignal.throwIfAborted();
      await pause(waitMs);
    }
    // It is an error to turn on what is on already, or is being turned on by somebody else.
    const expiring = client.updateTimeToLive({ TableName: table, TimeToLiveSpecification }, options);
    await unless("ValidationException", expiring);
  } catch (error) {
    if (!abortSignal.aborted) throw failureOf(error, table);
    const late = `Table "${table}" could not be used within ${READY_MS} ms of createTable(). Look at it in the console of AWS.`;
    throw new StoreError(late, { cause: error });
  }
}

/** What a request resolves with, or undefined when it rejects with an error of that name. */
function unless<Answer>(name: string, request: Promise<Answer>): Promise<Answer | undefined> {
  return request.catch((error: unknown) => {
    if (!(error instanceof Error && error.name === name)) throw error;
    return undefined;
  });
}
