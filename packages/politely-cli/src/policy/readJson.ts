import { loadPolicy, PolicyError } from "politely";
import type { Position } from "./place.js";

/** What a JSON text holds, or where it stops being JSON and why. */
export type JsonReading =
  | { readonly isJson: true; readonly value: unknown }
  | { readonly isJson: false; readonly position: Position; readonly message: string };

/** Reads a text as JSON. */
export function readJson(text: string): JsonReading {
  try {
    return { isJson: true, value: JSON.parse(text) as unknown };
  } catch {
    const position = errorPosition(text);
    return { isJson: false, position, message: `this is not JSON: ${reasonAt(text, position)}` };
  }
}

/** Engines leave the place out or word it differently; the library finds it by itself. */
function errorPosition(text: string): Position {
  try {
    loadPolicy(text);
  } catch (error) {
    const place = error instanceof PolicyError ? /line (\d+), column (\d+)/.exec(error.message) : null;
    if (place !== null) return { line: Number(place[1]), column: Number(place[2]) };
  }
  return { line: 1, column: 1 };
}

/** Names the usual mistakes, by what stands at the place and before it. */
function reasonAt(text: string, { line, column }: Position): string {
  const lines = text.split("\n");
  const here = (lines[line - 1] ?? "").slice(column - 1);
  const before = `${lines.slice(Math.max(0, line - 100), line - 1).join("\n")}\n${(lines[line - 1] ?? "").slice(0, column - 1)}`;
  const last = before.trimEnd().at(-1) ?? "";
  if (lines.length === line && here.trim() === "") return "the text ends before everything that was opened is closed";
  if (/^(\/\/|\/\*|#)/.test(here)) return "it has no comments; leave them out, or name the file .yaml and write YAML";
  if (here.startsWith("'")) return 'text stands in double quotes "…"';
  if (/^[}\]]/.test(here) && last === ",") return `the comma before ${here[0]} is one too many`;
  if (/^[A-Za-z_$]/.test(here) && /[{,]/.test(last)) return "names and text stand in double quotes";
  if (here.startsWith('"')) {
    if (/["\]}\w]/.test(last)) return "a comma or a colon is missing before this";
    return "this text is not closed, or has a line break, a tab or a \\ in it that JSON does not know";
  }
  const word = /^[\w.+-]+|^./u.exec(here)?.[0] ?? "";
  return `${JSON.stringify(word.slice(0, 60))} cannot stand here`;
}
