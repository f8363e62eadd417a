import { Duration } from "aws-cdk-lib";
import {
  Alarm,
  type AlarmProps,
  ComparisonOperator,
  type IAlarm,
  MathExpression,
  TreatMissingData,
} from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { ITopic } from "aws-cdk-lib/aws-sns";
import { Construct } from "constructs";
import { collectorMetric } from "./collectorMetrics.js";

/** What is watched, and who is told. */
export interface AlarmsProps {
  readonly functions: readonly IFunction[];
  readonly topic: ITopic;
}

/** With so many starts in a period, those of the first burst are less than half of all. */
const startsBeyondBurst = 10;

/** Tells `topic` when the collector is not as polite as it should be, or does not work. Each alarm is one line of the README. */
export class Alarms extends Construct {
  readonly all: readonly IAlarm[];

  constructor(scope: Construct, id: string, { functions, topic }: AlarmsProps) {
    super(scope, id);
    const above = ComparisonOperator.GREATER_THAN_THRESHOLD;
    const below = ComparisonOperator.LESS_THAN_THRESHOLD;
    const waitTime = collectorMetric({ name: "WaitTime", statistic: "Maximum" });
    const interval = collectorMetric({ name: "StartInterval", statistic: "Average" });
    const lockFailures = collectorMetric({ name: "LeaseFailures", statistic: "Sum", period: Duration.hours(1) });
    const concurrency = collectorMetric({ name: "StartConcurrency", statistic: "Maximum" });
    this.all = [
      this.#alarm("WaitLong", { metric: waitTime, threshold: 5, comparisonOperator: above }),
      this.#alarm("IntervalShort", { metric: usualInterval(), threshold: 1.5, comparisonOperator: below }),
      this.#alarm("IntervalLong", { metric: interval, threshold: 3, comparisonOperator: above }),
      this.#alarm("LockFailures", { metric: lockFailures, threshold: 5, comparisonOperator: above }),
      this.#alarm("Concurrency", { metric: concurrency, threshold: 1, comparisonOperator: above }),
      // One for each: a sum has no value while one of them is not called.
      ...functions.map((each) =>
        this.#alarm(`${each.node.id}Failed`, { metric: each.metricErrors(), threshold: 0, comparisonOperator: above }),
      ),
    ];
    for (const alarm of this.all) (alarm as Alarm).addAlarmAction(new SnsAction(topic));
  }

  #alarm(id: string, props: Omit<AlarmProps, "evaluationPeriods" | "treatMissingData">): Alarm {
    return new Alarm(this, id, {
      ...props,
      evaluationPeriods: 1,
      // No run, no numbers: most of the day that is as it should be.
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });
  }
}

/** The bucket lets five start at once, so the shortest interval says nothing. In a run of ten starts or more the median does; two short runs within a period look like one. */
function usualInterval(): MathExpression {
  return new MathExpression({
    expression: `IF(starts >= ${startsBeyondBurst}, median, 2)`,
    usingMetrics: {
      starts: collectorMetric({ name: "Starts", statistic: "Sum" }),
      median: collectorMetric({ name: "StartInterval", statistic: "p50" }),
    },
    label: "usual interval",
    period: Duration.minutes(5),
  });
}
