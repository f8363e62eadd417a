import { PolicyError, type PolicyProblem } from "../errors.js";
import { closeNames, closestName } from "./closestName.js";
import { type DurationBounds, readDuration } from "./duration.js";
import { readRate, readRefill, readWindow } from "./rate.js";
import { bad, type Reading } from "./reading.js";
import { showValue } from "./showValue.js";

/** What a value of the policy must look like, as data: `validate` checks values against it, and `jsonSchema` writes it down for editors. */
export type Shape =
  /** True or false; with `onlyTrue`, nothing but true. */
  | { readonly kind: "flag"; readonly onlyTrue?: boolean }
  /** One of several words. `what` is said instead of a long list of them, and `where` says where that list is. */
  | { readonly kind: "choice"; readonly options: readonly string[]; readonly what?: string; readonly where?: string }
  | TextShape
  | NumberShape
  | ({ readonly kind: "duration" } & DurationBounds)
  | { readonly kind: "rate"; readonly use: "bucket" | "window" }
  | { readonly kind: "list"; readonly of: Shape; readonly min: number; readonly max: number }
  /** An object whose keys are names given by the user. */
  | { readonly kind: "record"; readonly of: Shape; readonly keys: KeyShape }
  | ObjectShape
  /** One of several shapes, told apart by the type of the value: no two of them take the same type. */
  | { readonly kind: "either"; readonly of: readonly Shape[] }
  /** A function of a URL; only in code, never in a file. */
  | { readonly kind: "function" };

/** A text. */
export interface TextShape {
  readonly kind: "text";
  /** What it must be, after "must be". */
  readonly what: string;
  readonly maxLength: number;
  /** The source of a regular expression for the whole text, for editors and for us. */
  readonly pattern: string;
  /** What a regular expression cannot say. */
  readonly test?: (value: string) => boolean;
}

/** A number between two bounds, both included. */
export interface NumberShape {
  readonly kind: "number";
  readonly isWhole: boolean;
  readonly min: number;
  readonly max: number;
  readonly allowInfinity?: boolean;
  /** Said instead of its bounds. */
  readonly what?: string;
}

/** What the keys of a record must be. */
export interface KeyShape {
  /** What one key is called: `"host"`. */
  readonly what: string;
  /** Reads a key and gives the form in which keys are compared. */
  readonly read: (key: string) => Reading<string>;
  /** A regular expression that editors hold a key against; it may let through what `read` refuses. */
  readonly pattern: string;
}

/** An object with known fields. */
export interface ObjectShape {
  readonly kind: "object";
  /** By which `descriptions` and the JSON Schema know it. */
  readonly name: string;
  readonly fields: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  /** Fields that have no meaning without another one, each with that one. */
  readonly needs?: Readonly<Record<string, string>>;
  /** The field with an object of its own in which people forget to put theirs: `default` for `{ rate: "5/s" }`. */
  readonly inner?: string;
  readonly check?: Check;
}

/** Reports a problem of the field that `path` leads to. */
export type Report = (path: string, message: string) => void;

/** Looks for contradictions between the fields of an object. Fields may be wrong or missing; those are reported already. */
export type Check = (value: Fields, path: string, report: Report) => void;

type Fields = Readonly<Record<string, unknown>>;
type ShapeOf<Name> = Extract<Shape, { readonly kind: Name }>;

/** Where a policy comes from. Functions are only allowed in code. */
export interface ValidateOptions {
  readonly allowFunctions: boolean;
}

interface Context extends ValidateOptions {
  readonly report: Report;
}

/** Holds a value against a shape and lists everything that is wrong with it, each with its path. It looks no deeper than the shape goes. */
export function validate(shape: Shape, value: unknown, options: ValidateOptions): readonly PolicyProblem[] {
  const problems: PolicyProblem[] = [];
  visit(shape, value, "", { ...options, report: (path, message) => problems.push({ path, message }) });
  return problems;
}

/** Throws `PolicyError` with all problems, if there is any. */
export function throwIfAny(problems: readonly PolicyProblem[]): void {
  if (problems.length > 0) throw new PolicyError(problems);
}

/** Adds a field to a path: `default` and `rate` give `default.rate`. A name that cannot be shown so is written as a key is. */
export function fieldPath(path: string, field: string): string {
  if (!/^[^\p{Cc}]{1,100}$/u.test(field)) return keyPath(path, field);
  return path === "" ? field : `${path}.${field}`;
}

/** Adds a key chosen by the user to a path: `hosts` and `x.org` give `hosts["x.org"]`. */
export function keyPath(path: string, key: string): string {
  return `${path}[${JSON.stringify(key.length > 100 ? `${key.slice(0, 100)}…` : key)}]`;
}

/** Tells a plain object from lists, maps, dates and the like, whose contents would be overlooked. */
export function isPlainObject(value: unknown): value is Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Comparing with our own Object.prototype would refuse objects of another realm.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** What is known of one kind of shape. */
interface Kind<Of> {
  readonly hasType: (value: unknown, shape: Of, options: ValidateOptions) => boolean;
  /** What it asks for, after "must be". */
  readonly expected: (shape: Of, options: ValidateOptions) => string;
  /** The problem of a value that has the type, in words of its own, or `false`: it is not what is expected. True: it is fine. */
  readonly judge?: (value: never, shape: Of) => boolean | Reading<unknown>;
  /** Looks at what is inside of it. */
  readonly enter?: (value: never, shape: Of, path: string, context: Context) => void;
}

const isText = (value: unknown): boolean => typeof value === "string";

const kinds: { readonly [Name in Shape["kind"]]: Kind<ShapeOf<Name>> } = {
  flag: {
    hasType: (value) => typeof value === "boolean",
    expected: ({ onlyTrue }) => (onlyTrue === true ? "true" : "true or false"),
    judge: (value: boolean, { onlyTrue }) => value || onlyTrue !== true,
  },
  choice: {
    hasType: isText,
    expected: ({ what, options }) => what ?? options.map((option) => `"${option}"`).join(" or "),
    judge: (value: string, { options }) => options.includes(value),
  },
  text: {
    hasType: isText,
    expected: ({ what }) => what,
    judge: (value: string, { maxLength, pattern, test }) =>
      value.length <= maxLength && new RegExp(pattern, "u").test(value) && test?.(value) !== false,
  },
  number: {
    hasType: (value) => typeof value === "number",
    expected: expectedNumber,
    judge: (value: number, { min, max, isWhole, allowInfinity }) =>
      (value === Number.POSITIVE_INFINITY && allowInfinity === true) ||
      (value >= min && value <= max && (!isWhole || Number.isInteger(value))),
  },
  duration: {
    hasType: (value) => typeof value === "number" || typeof value === "string",
    expected: () => 'a length of time such as 500 (milliseconds) or "1.5s"',
    judge: readDuration,
  },
  rate: {
    hasType: (value) => typeof value === "string" || isPlainObject(value),
    expected: () => 'a count per time such as "60/min" or { "count": 5, "per": "1s" }',
    judge: (value: string | Fields, { use }) => {
      const other = Object.keys(typeof value === "string" ? {} : value).find((key) => key !== "count" && key !== "per");
      if (other !== undefined) return bad(`must have count and per only; got ${showValue(other)} too`);
      const rate = readRate(value);
      if (!rate.ok) return rate;
      return use === "bucket" ? readRefill(rate.value) : readWindow(rate.value);
    },
  },
  list: {
    hasType: (value) => Array.isArray(value),
    expected: ({ of }, options) => `a list, each entry ${expected(of, options)}`,
    judge: (value: readonly unknown[], { min, max }) =>
      (value.length >= min && value.length <= max) ||
      bad(`must have ${min} to ${max} entries; got ${showValue(value)}`),
    enter: (value: readonly unknown[], { of }, path, context) => {
      for (const [index, entry] of value.entries()) visit(of, entry, `${path}[${index}]`, context);
    },
  },
  record: {
    hasType: isPlainObject,
    expected: ({ keys }) => `an object with one field for each ${keys.what}`,
    enter: enterRecord,
  },
  object: {
    hasType: isPlainObject,
    expected: ({ fields }) => `an object with ${Object.keys(fields).join(", ")}`,
    enter: enterObject,
  },
  either: {
    hasType: (value, { of }, options) => of.some((one) => kindOf(one).hasType(value, one, options)),
    expected: ({ of }, options) =>
      of
        .filter(({ kind }) => options.allowFunctions || kind !== "function")
        .map((one) => expected(one, options))
        .join(", or "),
    enter: (value: unknown, { of }, path, context) => {
      for (const one of of) if (kindOf(one).hasType(value, one, context)) visit(one, value, path, context);
    },
  },
  function: {
    hasType: (value, _, { allowFunctions }) => typeof value === "function" && allowFunctions,
    expected: () => "a function of a URL",
  },
};

function kindOf(shape: Shape): Kind<Shape> {
  return kinds[shape.kind] as Kind<Shape>;
}

function expected(shape: Shape, options: ValidateOptions): string {
  return kindOf(shape).expected(shape, options);
}

function visit(shape: Shape, value: unknown, path: string, context: Context): void {
  const { hasType, judge, enter } = kindOf(shape);
  const verdict = hasType(value, shape, context) && (judge?.(value as never, shape) ?? true);
  if (verdict === true || (verdict !== false && verdict.ok)) enter?.(value as never, shape, path, context);
  else if (verdict !== false) context.report(path, verdict.problem);
  else context.report(path, `must be ${expected(shape, context)}; got ${showValue(value)}${hintOf(shape, value)}`);
}

function enterObject(value: Fields, shape: ObjectShape, path: string, context: Context): void {
  const { fields, required = [], needs = {} } = shape;
  const known = Object.keys(fields);
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue;
    const meant = meantField(name, shape);
    const hint = meant === undefined ? `known are ${known.join(", ")}` : `did you mean "${meant}"?`;
    context.report(fieldPath(path, name), `is not a field of the policy; ${hint}`);
  }
  for (const [name, field] of Object.entries(fields)) {
    const given = Object.hasOwn(value, name) ? value[name] : undefined;
    const at = fieldPath(path, name);
    if (given !== undefined) visit(field, given, at, context);
    else if (required.includes(name)) context.report(at, `is missing; it must be ${expected(field, context)}`);
    if (given !== undefined && name in needs && value[needs[name]] === undefined) {
      context.report(at, `has no meaning without ${needs[name]}; got ${showValue(given)}`);
    }
  }
  shape.check?.(value, path, context.report);
}

/** Finds the field that was probably meant: one of the shape, or one of its inner object as `default.rate`. */
function meantField(name: string, { fields, inner = "" }: ObjectShape): string | undefined {
  const innerShape: Shape | undefined = fields[inner];
  const innerNames = innerShape?.kind === "object" ? Object.keys(innerShape.fields) : [];
  // A name that is right but in the wrong place is no misspelling of another.
  const close = innerNames.includes(name) ? undefined : closestName(name, Object.keys(fields));
  const innerClose = closestName(name, innerNames);
  return close ?? (innerClose === undefined ? undefined : `${inner}.${innerClose}`);
}

function enterRecord(value: Fields, { of, keys }: ShapeOf<"record">, path: string, context: Context): void {
  const seen = new Map<string, string>();
  for (const [key, entry] of Object.entries(value)) {
    const at = keyPath(path, key);
    const name = keys.read(key);
    if (!name.ok) context.report(at, `${keys.what} ${name.problem}`);
    else if (seen.has(name.value)) {
      context.report(at, `is the same ${keys.what} as ${showValue(seen.get(name.value))}; keep one of them`);
    } else seen.set(name.value, key);
    visit(of, entry, at, context);
  }
}

/** What a choice adds to its problem: the words that were probably meant, and where all of them are. */
function hintOf(shape: Shape, value: unknown): string {
  if (shape.kind !== "choice" || typeof value !== "string") return "";
  const { options, where } = shape;
  const close = closeNames(value, options).map((name) => `"${name}"`);
  const hint = close.length === 0 ? "" : `; did you mean ${close.join(" or ")}?`;
  return where === undefined ? hint : `${hint === "" ? ";" : hint} ${where}`;
}

function expectedNumber({ isWhole, min, max, allowInfinity, what }: NumberShape): string {
  const kind = isWhole ? "a whole number" : "a number";
  const most = max >= 1_000_000 ? max.toExponential().replace("+", "") : String(max);
  return what ?? `${kind} from ${min} to ${most}${allowInfinity === true ? ", or Infinity" : ""}`;
}
