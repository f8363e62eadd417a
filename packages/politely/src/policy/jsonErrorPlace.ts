const string = /"(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const otherValue = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** The tokens that may come first in a value: `s` stands for a string, `v` for a number or one of the three words. */
const value = "sv{[";

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

/** Goes through the text token by token, each held against what may come there. */
function errorIndex(text: string): number {
  const open: string[] = [];
  let allowed = value;
  for (let index = 0; ; ) {
    while (index < text.length && " \t\n\r".includes(text[index])) index += 1;
    if (index === text.length) return index;
    const [token, end] = tokenAt(text, index);
    if (!allowed.includes(token)) return index;
    const isKey = token === "s" && (allowed === "s" || allowed === "s}");
    if (token === "{" || token === "[") open.push(token);
    if (token === "}" || token === "]") open.pop();
    index = end;
    allowed = isKey ? ":" : allowedAfter(token, open.at(-1));
  }
}

/** What may come after a token that is no key, inside of the bracket `around`. */
function allowedAfter(token: string, around: string | undefined): string {
  if (token === "{") return "s}";
  if (token === "[") return `${value}]`;
  if (token === ":" || (token === "," && around === "[")) return value;
  if (token === ",") return "s";
  if (around === undefined) return "";
  return around === "{" ? ",}" : ",]";
}

/** The kind of the token at an index, and where it ends. */
function tokenAt(text: string, index: number): readonly [kind: string, end: number] {
  string.lastIndex = index;
  if (string.test(text)) return ["s", string.lastIndex];
  otherValue.lastIndex = index;
  if (otherValue.test(text)) return ["v", otherValue.lastIndex];
  // A letter that begins no value must not pass for one of the kinds.
  return ["{}[],:".includes(text[index]) ? text[index] : "?", index + 1];
}
