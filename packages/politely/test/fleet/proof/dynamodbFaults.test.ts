import { dynamodbPlace } from "./places.js";
import { proveFaults } from "./proveFaults.js";

proveFaults("DynamoDB", dynamodbPlace);
