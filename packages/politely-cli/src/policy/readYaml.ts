import {
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  type Node,
  Parser,
  visit,
  type YAMLMap,
} from "yaml";
import type { DoubledName, Places } from "./jsonPlaces.js";
import type { Place } from "./place.js";

/** Something that keeps a text from being read, and where. */
export interface SyntaxProblem {
  readonly offset: number;
  readonly message: string;
}

/** What a YAML text holds; `problems` is not empty when it could not be read, and `value` is undefined then. */
export interface YamlReading extends Places {
  readonly value: unknown;
  readonly problems: readonly SyntaxProblem[];
  /** Where numbers, true, false and null stand, by what is written there: quotes would make them text. */
  readonly unquoted: ReadonlyMap<number, string>;
  readonly commentCount: number;
}

/** Policies are about ten levels deep. What is deeper is no policy, and would exhaust the stack. */
const maxDepth = 100;

/** How many values a file may have once its aliases are resolved. Ten lines of aliases to aliases can make billions. */
const maxValues = 1_000_000;

/** A place with what stands there. */
interface Part extends Place {
  readonly value: unknown;
  /** How many values that is, itself included, once aliases are resolved. */
  readonly size: number;
  readonly fields?: ReadonlyMap<string, Part>;
  readonly items?: readonly Part[];
}

/**
 * Reads a text as YAML 1.2, merge keys (`<<`) included, and finds where everything stands.
 *
 * One document only. Names must be text. Aliases are resolved; they must not lead in circles, nor to more than a million values.
 */
export function readYaml(text: string): YamlReading {
  const nothing = { root: { offset: 0 }, doubled: [], value: undefined, unquoted: new Map(), commentCount: 0 };
  const tokens = tokensOf(text);
  if ("problem" in tokens) return { ...nothing, problems: [tokens.problem] };
  // The package's own check for unique names compares each with each, which takes minutes for a large file.
  const composer = new Composer({ uniqueKeys: false, merge: true });
  const documents = [...composer.compose(tokens.tokens, true, text.length)];
  const found = problemsOf(documents, text);
  if (found.length > 0) return { ...nothing, problems: found };
  const document = documents[0];
  const doubled: DoubledName[] = [];
  const reader = new PartReader(doubled);
  const root = reader.read(document.contents);
  const { problems, unquoted } = reader;
  if (problems.length > 0) return { ...nothing, problems };
  return { root, doubled, value: root.value, problems, unquoted, commentCount: commentsIn(document) };
}

/** Takes the text apart without recursion, so that what is too deep is found before anything recursive sees it. */
function tokensOf(text: string): { readonly tokens: readonly CST.Token[] } | { readonly problem: SyntaxProblem } {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let offset = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme));
    if (parser.stack.length > 2 * maxDepth) {
      return { problem: { offset, message: `more than ${maxDepth} levels are no policy; the form has about ten` } };
    }
    offset = parser.offset;
  }
  tokens.push(...parser.end());
  return { tokens };
}

/** An unquoted `*.x.org` is an alias to YAML, which leads to errors that nobody understands. */
const starHost = /^[ \t]*(?:-[ \t]+)?(\*\.[^\s:,{}]+)[ \t]*:/gm;

function problemsOf(documents: readonly Document.Parsed[], text: string): readonly SyntaxProblem[] {
  const errors = documents.flatMap((document) => [...document.errors, ...document.warnings]);
  if (documents.length > 1) {
    const offset = documents[1].range[0];
    return [{ offset, message: "a second document begins here; a policy file has one" }];
  }
  if (errors.length === 0) return [];
  const stars = [...text.matchAll(starHost)].map(({ 0: line, 1: host, index }) => ({
    offset: index + line.indexOf("*"),
    message: `${host} must be in quotes, since * has a meaning of its own in YAML; write "${host}":`,
  }));
  if (stars.length > 0) return stars;
  return errors.map(({ code, message, pos }) => ({ offset: pos[0], message: wordsOf(code, message) }));
}

function wordsOf(code: string, message: string): string {
  if (code === "TAB_AS_INDENT") return "a tab stands where YAML wants blanks; indent with blanks";
  return `this is not YAML: ${message.replace(/\s+/g, " ")}`;
}

/** Reads values and their places in one go. The package resolves each alias by a search of the file, which takes minutes for thousands. */
class PartReader {
  readonly problems: SyntaxProblem[] = [];
  readonly unquoted = new Map<number, string>();
  /** What stands at each anchor so far; undefined while still inside it. An anchored part is looked at once, however often it is used. */
  readonly #anchors = new Map<string, Part | undefined>();
  /** How many values there are so far, aliases resolved. */
  #valueCount = 0;

  constructor(readonly doubled: DoubledName[]) {}

  read(given: unknown, keyOffset?: number): Part {
    const node = given as Node | null;
    const offset = node?.range?.[0] ?? keyOffset ?? 0;
    const key = keyOffset === undefined ? {} : { keyOffset };
    const before = this.#valueCount;
    const anchored = isAlias(node) ? this.#anchored(node.source, offset) : undefined;
    if (!this.#hasRoomFor(anchored?.size ?? 1, offset)) return { offset, ...key, value: null, size: 1 };
    if (isAlias(node)) return { value: null, size: 1, ...anchored, offset, ...key };
    if (isScalar(node) && node.type === "PLAIN" && typeof node.value !== "string") {
      this.unquoted.set(offset, node.source ?? "");
    }
    const anchor = isScalar(node) || isMap(node) || isSeq(node) ? node.anchor : undefined;
    if (anchor !== undefined) this.#anchors.set(anchor, undefined);
    const place = { ...this.#inside(node), offset, ...key, size: this.#valueCount - before };
    if (anchor !== undefined) this.#anchors.set(anchor, place);
    return place;
  }

  #hasRoomFor(count: number, offset: number): boolean {
    const isFull = this.#valueCount > maxValues;
    this.#valueCount += count;
    if (!isFull && this.#valueCount > maxValues) {
      const message = `the file has more than ${maxValues} values once its aliases are resolved, which no policy needs`;
      this.problems.push({ offset, message });
    }
    return this.#valueCount <= maxValues;
  }

  #anchored(name: string, offset: number): Part | undefined {
    const place = this.#anchors.get(name);
    if (place !== undefined) return place;
    const message = this.#anchors.has(name)
      ? `*${name} stands inside itself`
      : `*${name} is used, but no &${name} comes before it`;
    this.problems.push({ offset, message });
    return undefined;
  }

  #inside(node: Node | null): Pick<Part, "fields" | "items" | "value"> {
    if (isSeq(node)) {
      const items = node.items.map((item) => this.read(item));
      return { items, value: items.map(({ value }) => value) };
    }
    if (!isMap(node)) return { value: isScalar(node) ? node.value : null };
    const fields = this.#fieldsOf(node);
    return { fields, value: Object.fromEntries([...fields].map(([name, { value }]) => [name, value])) };
  }

  #fieldsOf(map: YAMLMap): ReadonlyMap<string, Part> {
    const fields = new Map<string, Part>();
    const merged: Part[] = [];
    for (const { key, value } of map.items) {
      const offset = (key as Node | null)?.range?.[0] ?? map.range?.[0] ?? 0;
      if (!isScalar(key)) {
        this.problems.push({ offset, message: "a list, an object or an alias stands here as a name; names are text" });
        continue;
      }
      const place = this.read(value, offset);
      if (key.type === "PLAIN" && key.source === "<<") {
        merged.push(place);
        continue;
      }
      const name = key.value === null ? "" : key.toString();
      const first = fields.get(name);
      if (first !== undefined) this.doubled.push({ name, offset, firstOffset: first.keyOffset ?? first.offset });
      fields.set(name, place);
    }
    for (const place of merged) this.#merge(place, fields);
    return fields;
  }

  /** Adds the fields of what stands after `<<`; those that are there already stay. */
  #merge(merged: Part, fields: Map<string, Part>): void {
    const sources = merged.items ?? [merged];
    if (sources.some((source) => source.fields === undefined)) {
      const message = "<< takes an object or a list of objects, and this is none";
      this.problems.push({ offset: merged.offset, message });
    }
    for (const [name, place] of sources.flatMap((source) => [...(source.fields ?? [])])) {
      if (!fields.has(name)) fields.set(name, place);
    }
  }
}

function commentsIn(document: Document.Parsed): number {
  let count = 0;
  const look = ({ comment, commentBefore }: Pick<Node, "comment" | "commentBefore">): void => {
    count += [comment, commentBefore].filter((text) => typeof text === "string").length;
  };
  look(document);
  visit(document, { Node: (_, node) => look(node) });
  return count;
}
