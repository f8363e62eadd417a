import {
  AlarmStatusWidget,
  Dashboard,
  GraphWidget,
  type IAlarm,
  type IMetric,
  LogQueryVisualizationType,
  LogQueryWidget,
} from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { ILogGroup } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import { collectorMetric } from "./collectorMetrics.js";

/** What is shown. */
export interface DashboardProps {
  readonly functions: readonly IFunction[];
  readonly logGroup: ILogGroup;
  readonly alarms: readonly IAlarm[];
  /** The host whose tokens are shown. */
  readonly host: string;
}

const width = 8;

/** Shows tokens, waits, intervals, lock failures and concurrent executions, the alarms, and what the log has of long waits and cooldowns. */
export function addDashboard(scope: Construct, { functions, logGroup, alarms, host }: DashboardProps): Dashboard {
  const graph = (title: string, ...left: IMetric[]): GraphWidget => new GraphWidget({ title, left, width });
  const measured = (name: string, ...statistics: string[]): IMetric[] =>
    statistics.map((statistic) => collectorMetric({ name, statistic }));
  const query = (title: string, ...queryLines: string[]): LogQueryWidget =>
    new LogQueryWidget({
      title,
      logGroupNames: [logGroup.logGroupName],
      queryLines,
      view: LogQueryVisualizationType.TABLE,
      width: 12,
    });
  return new Dashboard(scope, "Dashboard", {
    widgets: [
      [new AlarmStatusWidget({ title: "Alarms", alarms: [...alarms], width: 24, height: 3 })],
      [
        graph("Tokens available", collectorMetric({ name: "TokensAvailable", statistic: "Minimum", host })),
        graph("Wait for a start (s)", ...measured("WaitTime", "Average", "Maximum")),
        graph("Between two starts (s)", ...measured("StartInterval", "p50", "Average", "Maximum")),
      ],
      [
        graph("Locks taken, and not had", ...measured("LeasesTaken", "Sum"), ...measured("LeaseFailures", "Sum")),
        graph(
          "Concurrent executions, and requests in flight",
          ...functions.map((each) => each.metric("ConcurrentExecutions", { statistic: "Maximum" })),
          ...measured("StartConcurrency", "Maximum"),
        ),
        graph("Starts, and answers that said too many", ...measured("Starts", "Sum"), ...measured("Throttled", "Sum")),
      ],
      [
        query("Waits over 5 s", 'filter type = "grant" and waitedMs > 5000', "display @timestamp, key, waitedMs"),
        query("Told to stay away", 'filter type = "cooldown"', "display @timestamp, key, step, because"),
      ],
    ],
  });
}
