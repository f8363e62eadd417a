import type { Place } from "./place.js";

/** A name that stands twice in one object. JSON readers keep the last and say nothing. */
export interface DoubledName {
  readonly name: string;
  /** Where the later one begins. */
  readonly offset: number;
  /** Where the first one begins. */
  readonly firstOffset: number;
}

/** Where everything in a file stands, and which names stand twice. */
export interface Places {
  readonly root: Place;
  readonly doubled: readonly DoubledName[];
}

interface OpenPlace {
  readonly offset: number;
  readonly keyOffset?: number;
  readonly fields?: Map<string, Place>;
  readonly items?: Place[];
  /** The name whose value comes next. */
  pending?: { readonly name: string; readonly offset: number };
}

const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * Finds where everything in a JSON text stands. The text must be JSON: `JSON.parse` has taken it.
 *
 * It goes through the text once without recursion, so that depth does not matter.
 */
export function jsonPlaces(json: string): Places {
  const doubled: DoubledName[] = [];
  const open: OpenPlace[] = [{ offset: 0, items: [] }];
  for (const { 0: text, index } of json.matchAll(token)) {
    const around = open[open.length - 1];
    if (text === "}" || text === "]") open.pop();
    else if (text === "," || text === ":") continue;
    else if (around.fields !== undefined && around.pending === undefined) {
      around.pending = { name: JSON.parse(text) as string, offset: index };
    } else {
      const place = placeOf(text, index, around.pending?.offset);
      put(place, around, doubled);
      if (text === "{" || text === "[") open.push(place);
    }
  }
  return { root: open[0].items?.[0] ?? { offset: 0 }, doubled };
}

function placeOf(text: string, offset: number, keyOffset: number | undefined): OpenPlace {
  const key = keyOffset === undefined ? {} : { keyOffset };
  if (text === "{") return { offset, ...key, fields: new Map() };
  return text === "[" ? { offset, ...key, items: [] } : { offset, ...key };
}

function put(place: Place, around: OpenPlace, doubled: DoubledName[]): void {
  around.items?.push(place);
  if (around.fields === undefined || around.pending === undefined) return;
  const { name, offset } = around.pending;
  const first = around.fields.get(name);
  if (first !== undefined) doubled.push({ name, offset, firstOffset: first.keyOffset ?? first.offset });
  around.fields.set(name, place);
  delete around.pending;
}
