import { CfnOutput, CfnParameter, Duration, RemovalPolicy, Stack, type StackProps, TimeZone } from "aws-cdk-lib";
import { HttpApi, HttpMethod } from "aws-cdk-lib/aws-apigatewayv2";
import { HttpIamAuthorizer } from "aws-cdk-lib/aws-apigatewayv2-authorizers";
import { HttpLambdaIntegration } from "aws-cdk-lib/aws-apigatewayv2-integrations";
import { AttributeType, Billing, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Architecture, Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Schedule, ScheduleExpression, ScheduleTargetInput } from "aws-cdk-lib/aws-scheduler";
import { LambdaInvoke } from "aws-cdk-lib/aws-scheduler-targets";
import { Topic } from "aws-cdk-lib/aws-sns";
import type { Construct } from "constructs";
import { daysKey, daysTtl } from "../days.js";
import { Alarms } from "./alarms.js";
import { bundledHandler } from "./bundleHandler.js";
import { addDashboard } from "./dashboard.js";

/** What the stack is made of. */
export interface CollectorStackProps extends StackProps {
  /** The folder with the bundled handler. */
  readonly codeFolder: string;
}

/** One API call may start a run while another is told that it goes on. The lock sees to it that there is one run. */
const manualConcurrency = 2;

/** The collector in AWS: two functions with one handler, their tables, what starts them, and what watches them. */
export class CollectorStack extends Stack {
  constructor(scope: Construct, id: string, { codeFolder, ...props }: CollectorStackProps) {
    super(scope, id, props);
    const contact = new CfnParameter(this, "Contact", {
      description: "E-mail address or page where the site can reach you. Sent with every request.",
      allowedPattern: "([^\\s@<>()]+@[^\\s@<>()]+\\.[^\\s@<>()]+|https?://[^\\s<>()]+)",
    }).valueAsString;
    const siteHost = new CfnParameter(this, "SiteHost", {
      description: "The host that is collected from, by https.",
      default: "www.release.tdnet.info",
      allowedPattern: "[a-z0-9.-]+",
    }).valueAsString;

    const { limits, days } = this.#tables();
    const logGroup = new LogGroup(this, "Log", {
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const role = new Role(this, "Role", { assumedBy: new ServicePrincipal("lambda.amazonaws.com") });
    limits.grant(role, "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:ConditionCheckItem");
    days.grant(role, "dynamodb:UpdateItem");
    logGroup.grantWrite(role);

    const code = Code.fromAsset(codeFolder);
    const run = (name: string, reservedConcurrentExecutions: number): LambdaFunction =>
      new LambdaFunction(this, name, {
        code,
        handler: bundledHandler,
        runtime: Runtime.NODEJS_22_X,
        architecture: Architecture.ARM_64,
        memorySize: 256,
        timeout: Duration.minutes(5),
        reservedConcurrentExecutions,
        // After an error nothing tries again at once: the next run does.
        retryAttempts: 0,
        maxEventAge: Duration.minutes(5),
        role,
        logGroup,
        environment: {
          SITE_URL: `https://${siteHost}`,
          CONTACT: contact,
          LIMITS_TABLE: limits.tableName,
          DAYS_TABLE: days.tableName,
          LOCK_SECONDS: "300",
          MAX_PAGES: "15",
        },
      });
    const scheduled = run("ScheduledRun", 1);
    const manual = run("ManualRun", manualConcurrency);
    this.#schedule(scheduled);
    this.#api(manual);

    const functions = [scheduled, manual];
    const topic = new Topic(this, "AlarmTopic");
    const { all: alarms } = new Alarms(this, "Alarms", { functions, topic });
    addDashboard(this, { functions, logGroup, alarms, host: siteHost });
    new CfnOutput(this, "AlarmTopicArn", { value: topic.topicArn, description: "Subscribe to it to be told." });
  }

  #tables(): { readonly limits: TableV2; readonly days: TableV2 } {
    const limits = new TableV2(this, "Limits", {
      partitionKey: { name: "key", type: AttributeType.STRING },
      billing: Billing.onDemand(),
      timeToLiveAttribute: "ttl",
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const days = new TableV2(this, "Days", {
      partitionKey: { name: daysKey, type: AttributeType.STRING },
      billing: Billing.onDemand(),
      timeToLiveAttribute: daysTtl,
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      removalPolicy: RemovalPolicy.RETAIN,
    });
    return { limits, days };
  }

  #schedule(scheduled: LambdaFunction): void {
    new Schedule(this, "Daily", {
      description: "Collects the list of the day, in the evening of Tokyo.",
      schedule: ScheduleExpression.cron({ hour: "19", minute: "30", timeZone: TimeZone.ASIA_TOKYO }),
      target: new LambdaInvoke(scheduled, {
        input: ScheduleTargetInput.fromObject({ trigger: "schedule" }),
        retryAttempts: 0,
        maxEventAge: Duration.minutes(1),
      }),
    });
  }

  #api(manual: LambdaFunction): void {
    const api = new HttpApi(this, "Api", { createDefaultStage: false });
    api.addRoutes({
      path: "/runs",
      methods: [HttpMethod.POST],
      integration: new HttpLambdaIntegration("ManualRun", manual),
      authorizer: new HttpIamAuthorizer(),
    });
    const stage = api.addStage("Stage", { autoDeploy: true, throttle: { rateLimit: 1, burstLimit: 5 } });
    new CfnOutput(this, "RunsUrl", { value: `${stage.url}runs`, description: "POST, signed, starts a run." });
  }
}
