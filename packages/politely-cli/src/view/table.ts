import { fitText, padText, textWidth } from "./width.js";

/** A column of a table. */
export interface Column {
  readonly title: string;
  readonly align: "left" | "right";
}

/** How wide a table may be. */
export interface TableRoom {
  readonly columns: number;
  /** Stands for what was cut. */
  readonly more: string;
}

const GAP = "  ";

/**
 * Rows of a table, aligned under their titles, two spaces between the columns. No space ends a line.
 *
 * Cells may be painted, but those of the last column: with `room` they are cut to what is left of it, and the column is left out where its
 * title has no place.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  room?: TableRoom,
): string[] {
  const all = [columns.map(({ title }) => title), ...rows];
  const widths = columns.map((_, index) => all.reduce((most, row) => Math.max(most, textWidth(row[index] ?? "")), 0));
  const last = columns.length - 1;
  const before = widths.slice(0, last).reduce((sum, width) => sum + width + GAP.length, 0);
  const left = room === undefined ? Number.POSITIVE_INFINITY : room.columns - before;
  const isCut = left < (widths[last] ?? 0);
  const shown = isCut && left < textWidth(columns[last]?.title ?? "") ? columns.slice(0, last) : columns;
  return all.map((row) =>
    shown
      .map(({ align }, index) => {
        const cell = row[index] ?? "";
        const width = index === last ? Math.min(left, widths[last] ?? 0) : (widths[index] ?? 0);
        return padText(isCut && index === last ? fitText(cell, width, room?.more) : cell, width, align);
      })
      .join(GAP)
      .trimEnd(),
  );
}
