type Expected = "value" | "value or ]" | "key" | "key or }" | ":" | ", or end" | "nothing";

const blanks = /[ \t\n\r]*/y;
const string = /"(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const simpleValue = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/**
 * Finds where a text stops being JSON: the line and column, from 1, of the first character that cannot be there.
 *
 * Engines word their messages differently and often leave the place out, so it is looked for again.
 */
export function jsonErrorPlace(text: string): { readonly line: number; readonly column: number } {
  const before = text.slice(0, errorIndex(text)).split("\n");
  return { line: before.length, column: (before.at(-1) ?? "").length + 1 };
}

/** Drops the place from an engine's message about JSON, in the words of V8 and Firefox, so that it is not said twice. */
export function withoutJsonPlace(message: string): string {
  return message
    .replace(/ \(line \d+ column \d+\)$/, "")
    .replace(/ at position \d+$/, "")
    .replace(/ at line \d+ column \d+ of the JSON data$/, "");
}

function errorIndex(text: string): number {
  const open: string[] = [];
  let expected: Expected = "value";
  let index = 0;
  for (;;) {
    index = endOf(blanks, text, index) ?? index;
    if (index >= text.length) return text.length;
    const step = next({ text, index, expected, open });
    if (step === undefined) return index;
    index = step.index;
    expected = step.expected;
  }
}

interface Step {
  readonly index: number;
  readonly expected: Expected;
}

/** Takes one token; undefined when it cannot be there. `open` holds the brackets around it. */
function next({
  text,
  index,
  expected,
  open,
}: Step & { readonly text: string; readonly open: string[] }): Step | undefined {
  const character = text[index];
  const isClosing =
    open.length > 0 &&
    character === (open.at(-1) === "{" ? "}" : "]") &&
    (expected === ", or end" || expected === "value or ]" || expected === "key or }");
  if (isClosing) {
    open.pop();
    return { index: index + 1, expected: open.length === 0 ? "nothing" : ", or end" };
  }
  switch (expected) {
    case "key":
    case "key or }":
      return after(endOf(string, text, index), ":");
    case ":":
      return character === ":" ? { index: index + 1, expected: "value" } : undefined;
    case ", or end":
      if (character !== ",") return undefined;
      return { index: index + 1, expected: open.at(-1) === "{" ? "key" : "value" };
    case "nothing":
      return undefined;
    case "value":
    case "value or ]":
      if (character === "{" || character === "[") {
        open.push(character);
        return { index: index + 1, expected: character === "{" ? "key or }" : "value or ]" };
      }
      return after(
        endOf(string, text, index) ?? endOf(simpleValue, text, index),
        open.length === 0 ? "nothing" : ", or end",
      );
  }
}

function after(index: number | undefined, expected: Expected): Step | undefined {
  return index === undefined ? undefined : { index, expected };
}

function endOf(pattern: RegExp, text: string, index: number): number | undefined {
  pattern.lastIndex = index;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}
