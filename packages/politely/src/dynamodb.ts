import "./withSharing.js";

export type {
  DynamodbAttribute,
  DynamodbClient,
  DynamodbCondition,
  DynamodbItem,
  DynamodbMiddlewareStack,
  DynamodbOptions,
  DynamodbPlace,
  DynamodbPut,
  DynamodbRequestOptions,
  DynamodbStore,
  DynamodbTableShape,
  DynamodbTransactWrite,
} from "./stores/dynamodb.js";
export { dynamodbStore } from "./stores/dynamodb.js";
