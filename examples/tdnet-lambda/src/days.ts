import type { DynamoDB, UpdateItemInput } from "@aws-sdk/client-dynamodb";
import type { CollectedDay } from "./collectDay.js";

/** The name of the key of the table, a string. */
export const daysKey = "day";
/** The attribute, in seconds since 1970, after which DynamoDB may remove a day. */
export const daysTtl = "ttl";

const keptSeconds = 90 * 86_400;
const answerWithinMs = 10_000;

/** What was collected, one item for each day. */
export interface Days {
  /**
   * Notes that the run with this token begins with the day. Called before the first request to the site, so that a table
   * that is missing or may not be written costs the site nothing.
   */
  begin(day: string, token: number): Promise<void>;
  /** Keeps what the run with this token found. Rejects, and changes nothing, where a later run has begun with the day. */
  finish(found: CollectedDay, token: number): Promise<void>;
}

/**
 * Keeps days in a table with `day` (S) as its key. Everything rejects within 10 s.
 *
 * The token of the lease is kept with each day, and a write with a smaller one is refused: no lock can stop a write that is already on its way.
 */
export function openDays(client: DynamoDB, table: string): Days {
  const update = async (day: string, rest: Omit<UpdateItemInput, "TableName" | "Key">): Promise<void> => {
    const abortSignal = AbortSignal.timeout(answerWithinMs);
    try {
      await client.updateItem({ TableName: table, Key: { [daysKey]: { S: day } }, ...rest }, { abortSignal });
    } catch (error) {
      const { name, message } = error as Error;
      const what =
        name === "ConditionalCheckFailedException"
          ? "a later run has begun with it, so what this one found is dropped"
          : `${name}: ${message}. Check DAYS_TABLE ("${table}"), its key "${daysKey}", the region and the permission dynamodb:UpdateItem`;
      throw new Error(`The day ${day} could not be written: ${what}.`, { cause: error });
    }
  };
  return {
    begin: (day, token) =>
      update(day, {
        UpdateExpression: "SET #token = :token, #begun = :begun, #ttl = :ttl",
        ConditionExpression: "attribute_not_exists(#token) OR #token <= :token",
        ExpressionAttributeNames: { "#token": "token", "#begun": "begunAt", "#ttl": daysTtl },
        ExpressionAttributeValues: {
          ":token": { N: String(token) },
          ":begun": { S: new Date().toISOString() },
          ":ttl": { N: String(Math.floor(Date.now() / 1_000) + keptSeconds) },
        },
      }),
    finish: ({ day, documents, isComplete }, token) =>
      update(day, {
        UpdateExpression: "SET #documents = :documents, #complete = :complete",
        ConditionExpression: "#token = :token",
        ExpressionAttributeNames: { "#token": "token", "#documents": "documents", "#complete": "isComplete" },
        ExpressionAttributeValues: {
          ":token": { N: String(token) },
          ":documents": { L: documents.map((name) => ({ S: name })) },
          ":complete": { BOOL: isComplete },
        },
      }),
  };
}
