import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const program = fileURLToPath(new URL("../../dist/tdnet-lambda/src/infra/synth.js", import.meta.url));

interface Resource {
  readonly Type: string;
  readonly DeletionPolicy?: string;
  readonly Properties: Readonly<Record<string, unknown>>;
}

let folder: string;
let resources: Readonly<Record<string, Resource>>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "politely-stack-"));
  // No account, no region, no proxy, and no docker in the path.
  const env = { CDK_OUTDIR: folder, HOME: folder, PATH: folder };
  await promisify(execFile)(process.execPath, [program], { env, timeout: 60_000 });
  resources = (await written<{ Resources: typeof resources }>("TdnetCollector.template.json")).Resources;
}, 60_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

const written = async <T>(name: string): Promise<T> => JSON.parse(await readFile(join(folder, name), "utf8")) as T;
/** All resources of a type, by their id in the template without the hash at its end. */
const all = (type: string): [id: string, resource: Resource][] =>
  Object.entries(resources)
    .filter(([, { Type }]) => Type === type)
    .map(([id, resource]) => [id.slice(0, -8), resource]);
const propertiesOf = (type: string): Record<string, Resource["Properties"]> =>
  Object.fromEntries(all(type).map(([id, { Properties }]) => [id, Properties]));

it("is synthesised without an account, a network or docker, and CloudFormation's schemas find no fault with it", async () => {
  expect(await written("validation-report.json")).toMatchObject({ pluginReports: [] });
  const { files, dockerImages } = await written<{ files: object; dockerImages: object }>("TdnetCollector.assets.json");
  expect([Object.keys(files).length, Object.keys(dockerImages).length]).toEqual([2, 0]);
});

describe("the functions", () => {
  it("are two of the same code: one execution for the schedule, and for the API one that runs and one that says so", () => {
    const { ScheduledRun: scheduled, ManualRun: manual, ...others } = propertiesOf("AWS::Lambda::Function");
    expect(others).toEqual({});
    expect(scheduled).toMatchObject({
      ReservedConcurrentExecutions: 1,
      Handler: "index.handler",
      Timeout: 300,
      Environment: { Variables: { LOCK_SECONDS: "300", CONTACT: { Ref: "Contact" } } },
    });
    expect(manual).toEqual({ ...scheduled, ReservedConcurrentExecutions: 2 });
  });

  it("are not tried again after an error, neither by Lambda nor by the schedule", () => {
    const retries = Object.values(propertiesOf("AWS::Lambda::EventInvokeConfig"));
    expect(retries.map(({ MaximumRetryAttempts }) => MaximumRetryAttempts)).toEqual([0, 0]);
    expect(propertiesOf("AWS::Scheduler::Schedule").Daily).toMatchObject({
      ScheduleExpression: "cron(30 19 * * ? *)",
      ScheduleExpressionTimezone: "Asia/Tokyo",
      Target: { Input: '{"trigger":"schedule"}', RetryPolicy: { MaximumRetryAttempts: 0 } },
    });
  });

  it("may use the two tables and their log, and nothing else", () => {
    const grant = (resource: string, ...actions: string[]): object => {
      const id = Object.keys(resources).find((each) => each.slice(0, -8) === resource);
      const Action = actions.length === 1 ? actions[0] : actions;
      return { Effect: "Allow", Action, Resource: { "Fn::GetAtt": [id, "Arn"] } };
    };
    const { RoleDefaultPolicy: own, ...others } = propertiesOf("AWS::IAM::Policy");
    expect((own.PolicyDocument as { Statement: unknown }).Statement).toEqual([
      grant("Limits", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:ConditionCheckItem"),
      grant("Days", "dynamodb:UpdateItem"),
      grant("Log", "logs:CreateLogStream", "logs:PutLogEvents"),
    ]);
    // The other role is the schedule's, which may call its function.
    expect(Object.values(others)).toMatchObject([
      { PolicyDocument: { Statement: [{ Action: "lambda:InvokeFunction" }] } },
    ]);
    const managed = Object.values(propertiesOf("AWS::IAM::Role")).map(({ ManagedPolicyArns }) => ManagedPolicyArns);
    expect(managed).toEqual([undefined, undefined]);
  });
});

it("has two tables billed by request whose items end by themselves, and what was collected outlives the stack", () => {
  const table = (key: string, policy: string): object => ({
    DeletionPolicy: policy,
    Properties: {
      BillingMode: "PAY_PER_REQUEST",
      KeySchema: [{ AttributeName: key, KeyType: "HASH" }],
      TimeToLiveSpecification: { AttributeName: "ttl", Enabled: true },
    },
  });
  const tables = all("AWS::DynamoDB::GlobalTable").map(([, resource]) => resource);
  expect(tables).toMatchObject([table("key", "Delete"), table("day", "Retain")]);
});

it("lets those start a run by POST /runs who sign their call, once a second", () => {
  const routes = Object.values(propertiesOf("AWS::ApiGatewayV2::Route"));
  expect(routes).toMatchObject([{ RouteKey: "POST /runs", AuthorizationType: "AWS_IAM" }]);
  const stages = Object.values(propertiesOf("AWS::ApiGatewayV2::Stage"));
  expect(stages).toMatchObject([{ DefaultRouteSettings: { ThrottlingRateLimit: 1, ThrottlingBurstLimit: 5 } }]);
});

describe("the alarms", () => {
  const metric = (name: string, statistic: string, period: number): object => ({
    Namespace: "TdnetCollector",
    Dimensions: [{ Name: "Service", Value: "tdnet" }],
    MetricName: name,
    Statistic: statistic,
    Period: period,
    ComparisonOperator: "GreaterThanThreshold",
  });

  it.each([
    ["a wait of more than 5 s", "WaitLong", metric("WaitTime", "Maximum", 300), 5],
    ["intervals of more than 3 s", "IntervalLong", metric("StartInterval", "Average", 300), 3],
    ["more than 5 lock failures an hour", "LockFailures", metric("LeaseFailures", "Sum", 3_600), 5],
    ["more than one request in flight", "Concurrency", metric("StartConcurrency", "Maximum", 300), 1],
  ])("go off at %s", (_, name, properties, Threshold) => {
    expect(propertiesOf("AWS::CloudWatch::Alarm")[`Alarms${name}`]).toMatchObject({ ...properties, Threshold });
  });

  it("go off when starts beyond the burst are less than 1.5 s apart, and when a run fails", () => {
    const {
      AlarmsIntervalShort: short,
      AlarmsScheduledRunFailed: scheduled,
      AlarmsManualRunFailed: manual,
    } = propertiesOf("AWS::CloudWatch::Alarm");
    expect(short).toMatchObject({
      ComparisonOperator: "LessThanThreshold",
      Threshold: 1.5,
      Metrics: [
        { Expression: "IF(starts >= 10, median, 2)" },
        { Id: "starts", MetricStat: { Metric: { MetricName: "Starts" }, Stat: "Sum", Period: 300 } },
        { Id: "median", MetricStat: { Metric: { MetricName: "StartInterval" }, Stat: "p50", Period: 300 } },
      ],
    });
    // By themselves: a sum has no value while one of the functions is not called.
    for (const failed of [scheduled, manual]) {
      const isAbove = { Threshold: 0, ComparisonOperator: "GreaterThanThreshold" };
      expect(failed).toMatchObject({ ...isAbove, Namespace: "AWS/Lambda", MetricName: "Errors", Statistic: "Sum" });
    }
    expect(scheduled.Dimensions).not.toEqual(manual.Dimensions);
  });

  it("tell the topic, and are quiet while nothing runs", () => {
    const alarms = Object.values(propertiesOf("AWS::CloudWatch::Alarm"));
    const [topic] = Object.keys(resources).filter((id) => id.startsWith("AlarmTopic"));
    const common = { TreatMissingData: "notBreaching", EvaluationPeriods: 1, AlarmActions: [{ Ref: topic }] };
    expect(alarms).toMatchObject(Array.from({ length: 7 }, () => common));
  });
});

it("shows on one dashboard all that is measured", () => {
  const body = JSON.stringify(propertiesOf("AWS::CloudWatch::Dashboard"));
  const measured = ["TokensAvailable", "WaitTime", "StartInterval", "LeaseFailures", "ConcurrentExecutions"];
  expect(measured.filter((name) => !body.includes(name))).toEqual([]);
});
