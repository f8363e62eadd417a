import "./shareLimiter.js";

export type {
  DynamodbAttribute,
  DynamodbClient,
  DynamodbCondition,
  DynamodbItem,
  DynamodbOptions,
  DynamodbPlace,
  DynamodbPut,
  DynamodbRequestOptions,
  DynamodbStore,
  DynamodbTableShape,
  DynamodbTransactWrite,
} from "./stores/dynamodb.js";
export { dynamodbStore } from "./stores/dynamodb.js";
