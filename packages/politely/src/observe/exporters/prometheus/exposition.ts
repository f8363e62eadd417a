import type { Histogram } from "../histogram.js";
import type { Metric } from "../metrics.js";

/** The media type of the text below. */
export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Labels as they are written, without braces; empty for none. Written once for all series of a host, since there are many. */
export type Labels = string;

/** Writes labels. */
export function labelsOf(...labels: readonly (readonly [name: string, value: string])[]): Labels {
  return labels.map(([name, value]) => `${name}="${escaped(value)}"`).join(",");
}

/** Labels with more behind. */
export function joined(...labels: readonly Labels[]): Labels {
  return labels.filter((each) => each !== "").join(",");
}

/** A text in Prometheus' exposition format, version 0.0.4. A metric without series is left out. */
export class Exposition {
  readonly #lines: string[] = [];

  counters(metric: Metric, series: readonly (readonly [Labels, number])[]): void {
    this.#values(metric, "counter", series);
  }

  gauges(metric: Metric, series: readonly (readonly [Labels, number])[]): void {
    this.#values(metric, "gauge", series);
  }

  histograms(metric: Metric, series: readonly (readonly [Labels, Histogram])[]): void {
    const { prometheus: name } = metric;
    const lines = this.#lines;
    this.#head(metric, "histogram");
    for (const [labels, { bounds, counts, sum, count }] of series) {
      const bucket = `${name}_bucket{${labels === "" ? "" : `${labels},`}le="`;
      let below = 0;
      bounds.forEach((bound, index) => {
        below += counts[index];
        lines.push(`${bucket}${bound}"} ${below}`);
      });
      lines.push(
        `${bucket}+Inf"} ${count}`,
        sample(`${name}_sum`, labels, sum),
        sample(`${name}_count`, labels, count),
      );
    }
  }

  /** The whole text. */
  toString(): string {
    return this.#lines.length === 0 ? "" : `${this.#lines.join("\n")}\n`;
  }

  #values(metric: Metric, type: string, series: readonly (readonly [Labels, number])[]): void {
    if (series.length === 0) return;
    this.#head(metric, type);
    for (const [labels, value] of series) this.#lines.push(sample(metric.prometheus, labels, value));
  }

  #head({ prometheus: name, help }: Metric, type: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }
}

function sample(name: string, labels: Labels, value: number): string {
  return labels === "" ? `${name} ${value}` : `${name}{${labels}} ${value}`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
