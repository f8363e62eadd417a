import type { Gauges } from "../gauges.js";
import { type HostTable, OTHER } from "../hostTable.js";
import { LEASE_RESULTS, type LeaseResult } from "../leases.js";
import { COUNTERS, GAUGES, HISTOGRAMS, type Metric, WHOLE } from "../metrics.js";
import type { Look } from "../watch.js";
import { Exposition, joined, type Labels, labelsOf } from "./exposition.js";
import type { HostCounts } from "./hostCounts.js";

/** Everything that a scrape tells. */
export interface Scrape {
  readonly labels: Labels;
  readonly table: HostTable<HostCounts>;
  readonly look: Look;
  readonly outages: number;
  readonly isStoreAway: boolean;
  readonly leases: ReadonlyMap<LeaseResult, number>;
  readonly leasesHeld: number;
}

/** Codes that are told from the beginning, so that the first refusal is seen as a growth. */
const USUAL_CODES = ["POLITELY_DEADLINE", "POLITELY_QUEUE_FULL", "POLITELY_CAPACITY", "POLITELY_BUSY"];

/** Writes a scrape as text, a metric of all hosts at a time. */
export function* describeScrape(scrape: Scrape): Generator<string, void, undefined> {
  const { table, look, labels: common } = scrape;
  const hosts = [[hostLabels(common, OTHER), table.other] as const];
  for (const { label, series } of table.labelled.values()) hosts.push([hostLabels(common, label), series]);

  for (const name of ["starts", "unused", "cancelled", "expired", "throttled", "cooldowns", "lapsed"] as const) {
    yield written((text) => {
      text.counters(
        COUNTERS[name],
        hosts.map(([labels, { counters }]) => [labels, counters[name]]),
      );
    });
  }
  yield written((text) => {
    text.counters(
      COUNTERS.refused,
      hosts.flatMap(([labels, { refusedBy }]) => refusals(labels, refusedBy)),
    );
  });
  for (const name of ["wait", "interval", "inFlight"] as const) {
    yield written((text) => {
      text.histograms(
        HISTOGRAMS[name],
        hosts.map(([labels, series]) => [labels, series[name]]),
      );
    });
  }
  yield written((text) => {
    writeGauges(text, common, look);
    writeWhole(text, scrape);
  });
}

function written(write: (text: Exposition) => void): string {
  const text = new Exposition();
  write(text);
  return text.toString();
}

function hostLabels(common: Labels, host: string): Labels {
  return joined(common, labelsOf(["host", host]));
}

function refusals(labels: Labels, refusedBy: ReadonlyMap<string, number>): (readonly [Labels, number])[] {
  const codes = new Set([...USUAL_CODES, ...refusedBy.keys()]);
  return [...codes].map((code) => [joined(labels, labelsOf(["code", code])), refusedBy.get(code) ?? 0]);
}

function writeGauges(text: Exposition, common: Labels, { gauges }: Look): void {
  const rows = [...gauges].map(([label, gauge]) => [hostLabels(common, label), gauge] as const);
  const write = (metric: Metric, read: (gauge: Gauges) => number): void =>
    text.gauges(
      metric,
      rows.map(([labels, gauge]) => [labels, read(gauge)]),
    );
  write(GAUGES.inFlight, ({ inFlight }) => inFlight);
  write(GAUGES.waiting, ({ waiting }) => waiting);
  write(GAUGES.cooldown, ({ cooldownMs }) => cooldownMs / 1_000);
  text.gauges(
    GAUGES.tokens,
    rows.flatMap(([labels, { tokens }]) => (tokens === undefined ? [] : [[labels, tokens] as const])),
  );
}

function writeWhole(text: Exposition, scrape: Scrape): void {
  const { labels, look, outages, isStoreAway, leases, leasesHeld } = scrape;
  text.gauges(WHOLE.hosts, [[labels, look.hostCount]]);
  text.counters(WHOLE.outages, [[labels, outages]]);
  text.gauges(WHOLE.storeAway, [[labels, isStoreAway ? 1 : 0]]);
  text.counters(
    WHOLE.leases,
    LEASE_RESULTS.map((result) => [joined(labels, labelsOf(["result", result])), leases.get(result) ?? 0]),
  );
  text.gauges(WHOLE.leasesHeld, [[labels, leasesHeld]]);
}
