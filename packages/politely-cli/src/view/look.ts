import type { Io } from "../io.js";
import { type Paint, paintFor } from "../paint.js";

/** How pictures are drawn: how wide, with which colours and which characters. */
export interface Look {
  /** Columns that may be used. */
  readonly columns: number;
  readonly paint: Paint;
  readonly glyphs: Glyphs;
}

/** The characters of a picture. */
export interface Glyphs {
  /** The done part of a bar, the failed part, the rest. */
  readonly full: string;
  readonly failed: string;
  readonly empty: string;
  /** Stands for what was cut. */
  readonly more: string;
}

/** For terminals that show Unicode. */
export const unicodeGlyphs: Glyphs = { full: "█", failed: "▒", empty: "░", more: "…" };

/** For all others. */
export const asciiGlyphs: Glyphs = { full: "#", failed: "x", empty: ".", more: "..." };

/** The characters that the locale of `env` can show. Without a locale, and in one that is not UTF-8, they are ASCII. */
export function glyphsFor(env: Io["env"]): Glyphs {
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || "";
  return /utf-?8/i.test(locale) || env.WT_SESSION !== undefined ? unicodeGlyphs : asciiGlyphs;
}

/** How to draw on stderr, at the width it has now. */
export function stderrLook(io: Pick<Io, "env" | "isTerminal" | "stdout" | "stderr" | "columns">): Look {
  return { columns: sizeOf(io).columns, paint: paintFor(io), glyphs: glyphsFor(io.env) };
}

/** The size of the terminal at stderr, as it is now. Where it has none: `io.columns` and 24 rows. */
export function sizeOf(io: Pick<Io, "stderr" | "columns">): { readonly columns: number; readonly rows: number } {
  return { columns: numberIn(io.stderr, "columns") ?? io.columns, rows: numberIn(io.stderr, "rows") ?? 24 };
}

function numberIn(stream: object, name: string): number | undefined {
  const value: unknown = Reflect.get(stream, name);
  return typeof value === "number" && value > 0 ? value : undefined;
}
