/** Where the metrics of the collector are in CloudWatch. The function writes there, the alarms and the dashboard read there. */
export const metricsNamespace = "TdnetCollector";

/** The dimensions that every metric has. */
export const metricsDimensions = { Service: "tdnet" } as const;
