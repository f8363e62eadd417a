import type { Gauges } from "../gauges.js";
import { OTHER } from "../hostTable.js";
import type { LeaseResult } from "../leases.js";
import type { Taken } from "./hostWindow.js";

/** The dimension that names the host. */
export const HOST_DIMENSION = "Host";

/** Units of CloudWatch that are used. */
type Unit = "Count" | "Seconds";

/** A metric, its unit, and its value or values. An empty list is left out. */
type Measurement = readonly [name: string, unit: Unit, value: number | readonly number[]];

/** What all lines of an exporter have in common. */
export interface Frame {
  readonly namespace: string;
  readonly dimensions: Readonly<Record<string, string>>;
}

/** Names that a dimension must not have, since a line has them already. */
export const NAMES_TAKEN: readonly string[] =
  `_aws Host Starts Unused Refused Cancelled Expired Throttled Cooldowns LapsedPermits WaitTime StartInterval StartConcurrency
  InFlight Waiting Cooldown TokensAvailable StoreOutages LeasesTaken LeaseFailures LeasesHeld RefusedByCode LeasesByResult`.split(
    /\s+/,
  );

/** The line of one host: what was counted, by host and over all of them, and what is true of it now. */
export function hostLine(frame: Frame, label: string, taken: Taken, gauges: Gauges, timestampMs: number): string {
  const { counts } = taken;
  const counted: Measurement[] = [
    ...Object.entries(counts).map(([name, count]) => [name, "Count", count] as const),
    ["WaitTime", "Seconds", taken.waits],
    ["StartInterval", "Seconds", taken.intervals],
    ["StartConcurrency", "Count", taken.concurrency],
  ];
  const present: Measurement[] = [
    ["InFlight", "Count", gauges.inFlight],
    ["Waiting", "Count", gauges.waiting],
    ["Cooldown", "Seconds", gauges.cooldownMs / 1_000],
    ["TokensAvailable", "Count", gauges.tokens ?? []],
  ];
  const own = Object.keys(frame.dimensions);
  const withHost = [...own, HOST_DIMENSION];
  const directives = [
    // Counts of several hosts can be added up, so they are told without the host too; what is true now cannot.
    directive(frame, [own, withHost], counted),
    directive(frame, [withHost], present),
  ];
  return line(frame, timestampMs, directives, {
    [HOST_DIMENSION]: isPrintable(label) ? label : OTHER,
    ...members([...counted, ...present]),
    ...(counts.Refused === 0 ? {} : { RefusedByCode: taken.refusedBy }),
  });
}

/** What is counted for the whole process since the last flush. */
export interface WholeTaken {
  readonly outages: number;
  readonly leases: Readonly<Partial<Record<LeaseResult, number>>>;
  readonly leasesHeld: number;
}

/** The line of the whole process. */
export function wholeLine(frame: Frame, { outages, leases, leasesHeld }: WholeTaken, timestampMs: number): string {
  const { taken = 0, refused = 0, failed = 0, lost = 0 } = leases;
  const measured: Measurement[] = [
    ["StoreOutages", "Count", outages],
    ["LeasesTaken", "Count", taken],
    ["LeaseFailures", "Count", refused + failed + lost],
    ["LeasesHeld", "Count", leasesHeld],
  ];
  const directives = [directive(frame, [Object.keys(frame.dimensions)], measured)];
  return line(frame, timestampMs, directives, { ...members(measured), LeasesByResult: leases });
}

function line(
  frame: Frame,
  timestampMs: number,
  directives: readonly object[],
  rest: Readonly<Record<string, unknown>>,
): string {
  const _aws = { Timestamp: Math.floor(timestampMs), CloudWatchMetrics: directives };
  return JSON.stringify({ _aws, ...frame.dimensions, ...rest });
}

function directive(
  { namespace }: Frame,
  dimensions: readonly (readonly string[])[],
  measured: readonly Measurement[],
): object {
  const metrics = measured.filter(isTold).map(([name, unit]) => ({ Name: name, Unit: unit }));
  return { Namespace: namespace, Dimensions: dimensions, Metrics: metrics };
}

function members(measured: readonly Measurement[]): Record<string, number | readonly number[]> {
  return Object.fromEntries(measured.filter(isTold).map(([name, , value]) => [name, value]));
}

function isTold([, , value]: Measurement): boolean {
  return typeof value === "number" || value.length > 0;
}

/** CloudWatch takes printable ASCII in a dimension, and not only spaces. */
export function isPrintable(text: string): boolean {
  return /^[\x20-\x7e]+$/.test(text) && text.trim() !== "";
}
