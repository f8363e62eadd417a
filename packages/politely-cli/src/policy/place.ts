/** Where a part of a policy file stands, with the parts inside it. Offsets count UTF-16 units from the start of the text. */
export interface Place {
  /** Where the value begins. */
  readonly offset: number;
  /** Where its name begins, for the field of an object. */
  readonly keyOffset?: number;
  /** The fields of an object. */
  readonly fields?: ReadonlyMap<string, Place>;
  /** The entries of a list. */
  readonly items?: readonly Place[];
}

/** A line and a column, both from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Makes the function that turns offsets into lines and columns. Lines end with LF or CR LF. */
export function positionsIn(text: string): (offset: number) => Position {
  const starts = [0];
  for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", end + 1)) starts.push(end + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (starts[middle] <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - starts[low] + 1 };
  };
}

/**
 * Finds where a problem stands, by its path as `PolicyError` writes it: `hosts["*.x.org"].window[1]`.
 *
 * The answer is the value, or the name where the problem is about the name or the value spans lines. A field that is
 * missing is looked for as far as the path leads: the answer is the object that should have it.
 */
export function offsetOfProblem(root: Place, path: string, message: string): number {
  const { place, isWhole } = follow(root, path);
  const isAboutName = !isWhole || /^(is not a field|is the same) /.test(message);
  const isLarge = place.fields !== undefined || place.items !== undefined;
  return isAboutName || isLarge ? (place.keyOffset ?? place.offset) : place.offset;
}

/** The longest key that a path spells out; the rest is cut, with an ellipsis behind it. */
const maxKeyLength = 100;

const quotedKey = /^\[("(?:[^"\\]|\\.)*")\]/;
const listIndex = /^\[(\d+)\]/;
const plainField = /^\.([^.[]*)/;

interface Step {
  readonly place: Place;
  readonly length: number;
}

function follow(root: Place, path: string): { readonly place: Place; readonly isWhole: boolean } {
  let place = root;
  // The first field has no dot in front.
  let rest = path === "" || path.startsWith("[") ? path : `.${path}`;
  while (rest !== "") {
    const step = stepInto(place, rest);
    if (step === undefined) return { place, isWhole: false };
    place = step.place;
    rest = rest.slice(step.length);
  }
  return { place, isWhole: true };
}

function stepInto({ fields, items }: Place, rest: string): Step | undefined {
  const index = listIndex.exec(rest);
  if (index !== null) return stepTo(items?.[Number(index[1])], index[0].length);
  if (fields === undefined) return undefined;
  const quoted = quotedKey.exec(rest);
  if (quoted !== null) {
    const key = JSON.parse(quoted[1]) as string;
    return stepTo(fields.get(key) ?? fieldThatBegins(fields, key), quoted[0].length);
  }
  const plain = plainField.exec(rest);
  if (plain === null) return undefined;
  return stepTo(fields.get(plain[1]), plain[0].length) ?? oddField(fields, rest);
}

function stepTo(place: Place | undefined, length: number): Step | undefined {
  return place === undefined ? undefined : { place, length };
}

function fieldThatBegins(fields: ReadonlyMap<string, Place>, shown: string): Place | undefined {
  if (shown.length !== maxKeyLength + 1 || !shown.endsWith("…")) return undefined;
  const beginning = shown.slice(0, -1);
  return [...fields].find(([name]) => name.startsWith(beginning))?.[1];
}

/** A path writes an unknown field as it is, dots and brackets included. */
function oddField(fields: ReadonlyMap<string, Place>, rest: string): Step | undefined {
  const fitting = [...fields.keys()].filter((name) => rest.startsWith(`.${name}`));
  const name = fitting.reduce<string | undefined>(
    (longest, one) => (one.length > (longest?.length ?? 0) ? one : longest),
    undefined,
  );
  return name === undefined ? undefined : stepTo(fields.get(name), name.length + 1);
}
