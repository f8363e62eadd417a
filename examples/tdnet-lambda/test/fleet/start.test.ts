import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  type DynamodbServer,
  dynamodbClient,
  startDynamodb,
} from "../../../../packages/politely/test/servers/dynamodb.js";
import { openDays } from "../../src/days.js";
import { bundleHandler } from "../../src/infra/bundleHandler.js";
import { type Scene, setScene } from "./rig.js";

let dynamodb: DynamodbServer;
let scene: Scene;
beforeAll(async () => {
  dynamodb = await startDynamodb();
  scene = await setScene(dynamodb.endpoint, 1);
}, 60_000);
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
  await dynamodb.stop();
});

it("a wrong environment is one error that names every variable, when the handler is loaded, and no request", async () => {
  const change = { CONTACT: undefined, LOCK_SECONDS: "soon", SITE_URL: "tdnet" };
  const message = await scene.start("one", change).then(
    () => "It started.",
    (error: Error) => error.message,
  );
  expect(message.match(/SettingsError: The collector cannot start/g)).toHaveLength(1);
  expect(message).toContain("CONTACT is missing: an e-mail address or a page where the site can reach you.");
  expect(message).toContain('LOCK_SECONDS must be a whole number from 1 to 3600; got "soon".');
  expect(message).toContain('SITE_URL must be the address of the site, https://host without a path; got "tdnet".');
  expect(scene.site.arrivals).toEqual([]);
});

it.each([
  ["a limits table that is not there", { LIMITS_TABLE: "nowhere" }, /^StoreError: There is no table "nowhere"/],
  [
    "a days table that is not there",
    { DAYS_TABLE: "nowhere" },
    /^Error: The day [\d-]{10} could not be written: ResourceNotFoundException: .*Check DAYS_TABLE \("nowhere"\)/s,
  ],
  [
    "no credentials",
    { AWS_ACCESS_KEY_ID: undefined, AWS_SECRET_ACCESS_KEY: undefined, HOME: "/nowhere" },
    /^StoreError: DynamoDB does not accept the client's credentials \(CredentialsProviderError: /,
  ],
  [
    "credentials that are none",
    { AWS_ACCESS_KEY_ID: "not a key" },
    /^StoreError: DynamoDB does not accept the client's credentials \(/,
  ],
  [
    "a DynamoDB that does not answer",
    { AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:9" },
    /^StoreError: .*ECONNREFUSED.*Check the client's region and endpoint/,
  ],
])("%s: the run fails with one clear error, and without a request", async (_, change, error) => {
  const machine = await scene.start("one", change);
  expect((await machine.invoke("manual", "one")).error).toMatch(error);
  expect(scene.site.arrivals).toEqual([]);
  await machine.end();
});

it("a run that failed before its first request leaves no lock behind, and the bundle that is deployed runs alone", async () => {
  const folder = await mkdtemp(join(tmpdir(), "politely-bundle-"));
  try {
    const machine = await scene.start("one", {}, await bundleHandler(folder));
    expect(await machine.invoke("manual", "one")).toMatchObject({ statusCode: 200, body: { documentCount: 3 } });
  } finally {
    await rm(folder, { recursive: true });
  }
});

it("what an older run has found is refused once a later one has begun with the day", async () => {
  const client = dynamodbClient(dynamodb.endpoint);
  const daysTable = `days-${randomUUID()}`;
  await client.createTable({
    TableName: daysTable,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [{ AttributeName: "day", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "day", KeyType: "HASH" }],
  });
  const days = openDays(client, daysTable);
  const found = { day: "2026-02-06", pageCount: 1, documents: ["1.pdf"], isComplete: true };
  await days.begin(found.day, 1);
  await days.begin(found.day, 2);
  await expect(days.begin(found.day, 1)).rejects.toThrow("a later run has begun with it");
  await expect(days.finish(found, 1)).rejects.toThrow("a later run has begun with it");
  await days.finish({ ...found, documents: ["2.pdf"] }, 2);
  const { Item } = await client.getItem({ TableName: daysTable, Key: { day: { S: found.day } } });
  expect(Item).toMatchObject({ token: { N: "2" }, documents: { L: [{ S: "2.pdf" }] }, isComplete: { BOOL: true } });
  client.destroy();
});
