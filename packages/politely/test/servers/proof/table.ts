/** A table that grows while tests run, and is printed as Markdown. */
export class Table {
  readonly #rows: string[][] = [];

  constructor(
    readonly title: string,
    readonly columns: readonly string[],
  ) {}

  add(...cells: string[]): void {
    this.#rows.push(cells);
  }

  /** The whole of it, in the order in which rows were added. */
  toString(): string {
    const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
    return [`\n${this.title}\n`, line(this.columns), line(this.columns.map(() => "---")), ...this.#rows.map(line)].join(
      "\n",
    );
  }
}

/** `0.1234` as `"12.3 %"`. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
