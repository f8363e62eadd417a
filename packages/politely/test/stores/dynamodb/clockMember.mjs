// A member of a fleet that tells what time it is in DynamoDB, and what time it believes it is.
import { DynamoDB } from "@aws-sdk/client-dynamodb";
import { joinFleet, machineUs } from "../../fleet/member.mjs";

const member = joinFleet();
const { endpoint, table } = member.input;
const { dynamodbCells } = await member.library("stores/dynamodb.js");
const credentials = { accessKeyId: "politely", secretAccessKey: "politely" };
const cells = dynamodbCells(new DynamoDB({ endpoint, region: "eu-central-1", credentials }), { table });
await member.ready();

for (let round = 0; round < 20; round++) {
  await cells
    .change(["fleet"], (/** @type {unknown} */ _, /** @type {number} */ nowUs) => {
      const atUs = machineUs();
      return { writes: [], answer: { nowUs, atUs, wallLeadMs: Date.now() - atUs / 1_000 } };
    })
    .then((/** @type {object} */ told) => member.log({ type: "time", ...told }));
}
member.leave();
