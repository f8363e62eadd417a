/** The longest name of an intent or a scope. */
export const maxNameLength = 200;

/** The characters no name may have, as they stand between the brackets of a regular expression: they separate names in our own tables. */
export const controlCharacters = "\\u0000-\\u001f\\u007f";

/** What a name must be, for messages. */
export const nameForm = `of 1 to ${maxNameLength} characters, none of them a control character`;

const controlCharacter = new RegExp(`[${controlCharacters}]`);

/** Tells whether a value can be the name of an intent or a scope: a text of 1 to 200 characters without control characters. */
export function isName(value: unknown): value is string {
  return typeof value === "string" && value.length <= maxNameLength && isPrintable(value);
}

/** Tells whether a text is not empty and has no control characters, whatever its length. */
export function isPrintable(text: string): boolean {
  return text !== "" && !controlCharacter.test(text);
}
