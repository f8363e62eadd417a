/** A line of embedded metric format, read. */
export interface EmfLine {
  readonly _aws: { readonly Timestamp: number; readonly CloudWatchMetrics: readonly Directive[] };
  readonly [member: string]: unknown;
}

interface Directive {
  readonly Namespace: string;
  readonly Dimensions: readonly (readonly string[])[];
  readonly Metrics: readonly { readonly Name: string; readonly Unit?: string; readonly StorageResolution?: number }[];
}

const UNITS = ["Seconds", "Milliseconds", "Count", "Count/Second", "Percent", "Bytes", "None"];

/** Reads a line and throws unless it keeps to the format: what breaks a rule makes CloudWatch drop metrics without a word. */
export function checkEmf(line: string): EmfLine {
  require(!line.includes("\n"), "a line has no line feed");
  require(Buffer.byteLength(line) <= 256 * 1_024, "a log event has at most 256 KiB");
  const read = JSON.parse(line) as EmfLine;
  const { Timestamp, CloudWatchMetrics } = read._aws;
  require(Number.isInteger(Timestamp) && Timestamp > 0, "Timestamp is whole milliseconds");
  require(CloudWatchMetrics.length > 0, "there is a directive");
  const names = CloudWatchMetrics.flatMap(({ Metrics }) => Metrics.map(({ Name }) => Name));
  require(names.length <= 100, `at most 100 metrics a line; got ${names.length}`);
  require(new Set(names).size === names.length, "a metric is named once");
  for (const directive of CloudWatchMetrics) checkDirective(directive, read);
  return read;
}

/** The values of a metric in a line, none when it has none. */
export function valuesOf(line: EmfLine, name: string): number[] {
  const value = line[name];
  return value === undefined ? [] : ([value].flat() as number[]);
}

function checkDirective({ Namespace, Dimensions, Metrics, ...rest }: Directive, line: EmfLine): void {
  require(Object.keys(rest).length === 0, "a directive has no other members");
  require(isText(Namespace, 1_024), "Namespace has 1 to 1,024 characters");
  require(Dimensions.length >= 1, "there is a set of dimensions");
  for (const set of Dimensions) {
    require(set.length <= 30, "a set has at most 30 dimensions");
    require(new Set(set).size === set.length, "a dimension is in a set once");
    for (const name of set) {
      require(isText(name, 250), "a dimension's name has 1 to 250 characters");
      const value = line[name];
      require(isText(value, 1_024), `the dimension ${name} is a text of 1 to 1,024 characters`);
      require(/^[\x20-\x7e]+$/.test(String(value)), `the dimension ${name} is printable ASCII`);
    }
  }
  require(Metrics.length >= 1 && Metrics.length <= 100, "1 to 100 metrics a directive");
  for (const { Name, Unit, StorageResolution } of Metrics) {
    require(isText(Name, 1_024), "a metric's name has 1 to 1,024 characters");
    require(Unit === undefined || UNITS.includes(Unit), `${Unit} is a unit`);
    require(StorageResolution === undefined ||
      StorageResolution === 1 ||
      StorageResolution === 60, "resolution 1 or 60");
    const values = [line[Name]].flat();
    require(values.length >= 1 && values.length <= 100, `${Name} has 1 to 100 values; got ${values.length}`);
    require(values.every((value) => typeof value === "number" && Number.isFinite(value)), `${Name} is a number`);
  }
}

function isText(value: unknown, most: number): boolean {
  return typeof value === "string" && value.trim().length > 0 && value.length <= most;
}

function require(condition: boolean, rule: string): void {
  if (!condition) throw new Error(`Not valid EMF: ${rule}.`);
}
