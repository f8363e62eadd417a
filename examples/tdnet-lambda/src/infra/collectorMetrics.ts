import { Duration } from "aws-cdk-lib";
import { Metric } from "aws-cdk-lib/aws-cloudwatch";
import { metricsDimensions, metricsNamespace } from "../metricNames.js";

/** Which metric of the collector, and over what. */
export interface CollectorMetric {
  /** `"WaitTime"`; docs/metrics.md of Politely lists them. */
  readonly name: string;
  /** `"Maximum"`, `"p50"`, … */
  readonly statistic: string;
  /** Default 5 min. */
  readonly period?: Duration;
  /** The host, for what is only told for each host: tokens, and who waits. */
  readonly host?: string;
}

/** A metric that the function writes. */
export function collectorMetric({ name, statistic, period = Duration.minutes(5), host }: CollectorMetric): Metric {
  const dimensionsMap = host === undefined ? metricsDimensions : { ...metricsDimensions, Host: host };
  return new Metric({ namespace: metricsNamespace, metricName: name, dimensionsMap, statistic, period });
}
