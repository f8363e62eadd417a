import { DynamoDB } from "@aws-sdk/client-dynamodb";
import { dynamodbStore } from "politely/dynamodb";
import { daysKey } from "../days.js";

/** The names of the two tables. */
export interface TableNames {
  readonly limitsTable: string;
  readonly daysTable: string;
}

/** Settings of an AWS client that make it use DynamoDB at `endpoint` of this machine, where any credentials will do. */
export function localAws(endpoint: string): Record<string, string> {
  return {
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_EC2_METADATA_DISABLED: "true",
  };
}

/** Creates both tables in a DynamoDB of this machine, as the stack does in AWS. */
export async function createTables(endpoint: string, { limitsTable, daysTable }: TableNames): Promise<void> {
  const {
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
  } = localAws(endpoint);
  const client = new DynamoDB({ endpoint, region, credentials: { accessKeyId, secretAccessKey } });
  try {
    await dynamodbStore(client, { table: limitsTable }).createTable();
    await client.createTable({
      TableName: daysTable,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: daysKey, AttributeType: "S" }],
      KeySchema: [{ AttributeName: daysKey, KeyType: "HASH" }],
    });
  } finally {
    client.destroy();
  }
}
