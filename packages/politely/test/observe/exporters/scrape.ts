import type { PrometheusMetrics } from "../../../src/prometheus.js";

/** One line of a scrape. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Reads a scrape line by line. Throws for a line that is neither a comment nor a sample. */
export function parseScrape(text: string): Sample[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
      if (match === null) throw new Error(`This is no sample: ${line}`);
      const labels = [...(match[2] ?? "").matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)];
      const value = match[3] === "+Inf" ? Number.POSITIVE_INFINITY : Number(match[3]);
      return {
        name: match[1],
        labels: Object.fromEntries(labels.map(([, name, text]) => [name, unescaped(text)])),
        value,
      };
    });
}

/** Adds up the samples of a name that have these labels. */
export function sumOf(samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  return samples
    .filter((sample) => sample.name === name && hasLabels(sample, labels))
    .reduce((sum, { value }) => sum + value, 0);
}

/** Scrapes and reads. */
export async function scrape(metrics: Pick<PrometheusMetrics, "text">): Promise<Sample[]> {
  return parseScrape(await metrics.text());
}

/** A sample's name and labels, as one text. */
export function seriesOf({ name, labels }: Sample): string {
  return `${name}${JSON.stringify(labels)}`;
}

function hasLabels(sample: Sample, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(labels).every(([name, value]) => sample.labels[name] === value);
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, sign: string) => (sign === "n" ? "\n" : sign));
}
