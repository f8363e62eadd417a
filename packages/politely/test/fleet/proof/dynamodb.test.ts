import { dynamodbPlace } from "./places.js";
import { proveFleet } from "./proveFleet.js";

proveFleet("DynamoDB", dynamodbPlace, { isGentle: true });
