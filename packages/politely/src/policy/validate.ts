import type { PolicyProblem } from "../errors.js";
import { closeNames, closestName } from "./closestName.js";
import { readDuration } from "./duration.js";
import { readRate, readRefill, readWindow } from "./rate.js";
import { bad, good, type Reading } from "./reading.js";
import type {
  ChoiceShape,
  ListShape,
  NumberShape,
  ObjectShape,
  RateShape,
  RecordShape,
  Report,
  Shape,
} from "./shape.js";
import { showValue } from "./showValue.js";

/** Where a policy comes from. Functions are only allowed in code. */
export interface ValidateOptions {
  readonly allowFunctions: boolean;
}

/** Holds a value against a shape and lists everything that is wrong with it, each with its path. It looks no deeper than the shape goes. */
export function validate(shape: Shape, value: unknown, options: ValidateOptions): readonly PolicyProblem[] {
  const problems: PolicyProblem[] = [];
  visit({ shape, value, path: "" }, { ...options, report: (path, message) => problems.push({ path, message }) });
  return problems;
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
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Comparing with our own Object.prototype would refuse objects of another realm.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

interface Visit<Kind extends Shape, Value> {
  readonly shape: Kind;
  readonly value: Value;
  readonly path: string;
}

interface Context extends ValidateOptions {
  readonly report: Report;
}

type Fields = Readonly<Record<string, unknown>>;

function visit({ shape, value, path }: Visit<Shape, unknown>, context: Context): void {
  if (!hasTypeOf(shape, value, context)) {
    context.report(path, mustBe(shape, value, context));
    return;
  }
  switch (shape.kind) {
    case "object":
      visitObject({ shape, value: value as Fields, path }, context);
      break;
    case "record":
      visitRecord({ shape, value: value as Fields, path }, context);
      break;
    case "list":
      visitList({ shape, value: value as readonly unknown[], path }, context);
      break;
    case "either":
      for (const one of shape.of) {
        if (hasTypeOf(one, value, context)) visit({ shape: one, value, path }, context);
      }
      break;
    case "flag":
    case "choice":
    case "text":
    case "number":
    case "duration":
    case "rate":
    case "function": {
      const reading = readSimple(shape, value, context);
      if (!reading.ok) context.report(path, reading.problem);
    }
  }
}

function visitObject({ shape, value, path }: Visit<ObjectShape, Fields>, context: Context): void {
  const known = Object.keys(shape.fields);
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue;
    const meant = meantField(name, shape);
    const hint = meant === undefined ? `known are ${known.join(", ")}` : `did you mean "${meant}"?`;
    context.report(fieldPath(path, name), `is not a field of the policy; ${hint}`);
  }
  for (const [name, field] of Object.entries(shape.fields)) {
    const fieldValue = Object.hasOwn(value, name) ? value[name] : undefined;
    const at = fieldPath(path, name);
    if (fieldValue !== undefined) visit({ shape: field.shape, value: fieldValue, path: at }, context);
    else if (field.isRequired === true) context.report(at, `is missing; it must be ${expected(field.shape, context)}`);
    if (fieldValue !== undefined && field.needs !== undefined && value[field.needs] === undefined) {
      context.report(at, `has no meaning without ${field.needs}; got ${showValue(fieldValue)}`);
    }
  }
  for (const check of shape.checks ?? []) check(value, path, context.report);
}

/** Finds the field that was probably meant: one of the shape, or one of its inner object as `default.rate`. */
function meantField(name: string, shape: ObjectShape): string | undefined {
  const innerShape = shape.inner === undefined ? undefined : shape.fields[shape.inner].shape;
  const inner = innerShape?.kind === "object" ? Object.keys(innerShape.fields) : [];
  // A name that is right but in the wrong place is no misspelling of another.
  const close = inner.includes(name) ? undefined : closestName(name, Object.keys(shape.fields));
  if (close !== undefined) return close;
  const innerClose = closestName(name, inner);
  return innerClose === undefined ? undefined : `${shape.inner}.${innerClose}`;
}

function visitRecord({ shape, value, path }: Visit<RecordShape, Fields>, context: Context): void {
  const seen = new Map<string, string>();
  for (const [key, entry] of Object.entries(value)) {
    const at = keyPath(path, key);
    const name = shape.keys.read(key);
    if (!name.ok) context.report(at, `${shape.keys.what} ${name.problem}`);
    else if (seen.has(name.value)) {
      context.report(at, `is the same ${shape.keys.what} as ${showValue(seen.get(name.value))}; keep one of them`);
    } else seen.set(name.value, key);
    visit({ shape: shape.of, value: entry, path: at }, context);
  }
}

function visitList({ shape, value, path }: Visit<ListShape, readonly unknown[]>, context: Context): void {
  if (value.length < shape.min || value.length > shape.max) {
    context.report(path, `must have ${shape.min} to ${shape.max} entries; got ${showValue(value)}`);
    return;
  }
  value.forEach((entry, index) => {
    visit({ shape: shape.of, value: entry, path: `${path}[${index}]` }, context);
  });
}

type SimpleShape = Exclude<Shape, { readonly kind: "object" | "record" | "list" | "either" }>;

/** Reads a value whose type is right. */
function readSimple(shape: SimpleShape, value: unknown, context: Context): Reading<unknown> {
  switch (shape.kind) {
    case "flag":
      return shape.onlyTrue === true && value !== true ? bad(mustBe(shape, value, context)) : good(value);
    case "choice":
      return readChoice(shape, String(value), context);
    case "text": {
      const text = String(value);
      const isFine =
        text.length <= shape.maxLength && new RegExp(shape.pattern, "u").test(text) && shape.test?.(text) !== false;
      return isFine ? good(text) : bad(mustBe(shape, value, context));
    }
    case "number": {
      const number = Number(value);
      if (number === Number.POSITIVE_INFINITY && shape.allowInfinity === true) return good(number);
      const isAboveMin = shape.isMinExcluded === true ? number > shape.min : number >= shape.min;
      const isFine = isAboveMin && number <= shape.max && (!shape.isWhole || Number.isInteger(number));
      return isFine ? good(number) : bad(mustBe(shape, value, context));
    }
    case "duration":
      return readDuration(value, shape);
    case "rate":
      return readRateFor(shape, value);
    case "function":
      return good(value);
  }
}

function readChoice(shape: ChoiceShape, text: string, context: Context): Reading<string> {
  if (shape.options.includes(text)) return good(text);
  const close = closeNames(text, shape.options).map((name) => `"${name}"`);
  const hint = close.length === 0 ? "" : `; did you mean ${close.join(" or ")}?`;
  const where = shape.where === undefined ? "" : `${hint === "" ? ";" : ""} ${shape.where}`;
  return bad(mustBe(shape, text, context) + hint + where);
}

function readRateFor(shape: RateShape, value: unknown): Reading<unknown> {
  const unknown = isPlainObject(value) ? Object.keys(value).find((key) => key !== "count" && key !== "per") : undefined;
  if (unknown !== undefined) return bad(`must have count and per only; got ${showValue(unknown)} too`);
  const rate = readRate(value);
  if (!rate.ok) return rate;
  return shape.use === "bucket" ? readRefill(rate.value) : readWindow(rate.value);
}

function hasTypeOf(shape: Shape, value: unknown, context: ValidateOptions): boolean {
  switch (shape.kind) {
    case "flag":
      return typeof value === "boolean";
    case "choice":
    case "text":
      return typeof value === "string";
    case "number":
      return typeof value === "number";
    case "duration":
      return typeof value === "number" || typeof value === "string";
    case "rate":
      return typeof value === "string" || isPlainObject(value);
    case "list":
      return Array.isArray(value);
    case "record":
    case "object":
      return isPlainObject(value);
    case "function":
      return typeof value === "function" && context.allowFunctions;
    case "either":
      return shape.of.some((one) => hasTypeOf(one, value, context));
  }
}

function mustBe(shape: Shape, value: unknown, options: ValidateOptions): string {
  return `must be ${expected(shape, options)}; got ${showValue(value)}`;
}

/** Says what a shape asks for, after "must be". */
function expected(shape: Shape, options: ValidateOptions): string {
  switch (shape.kind) {
    case "flag":
      return shape.onlyTrue === true ? "true" : "true or false";
    case "choice":
      return shape.what ?? shape.options.map((option) => `"${option}"`).join(" or ");
    case "text":
      return shape.what;
    case "number":
      return expectedNumber(shape);
    case "duration":
      return 'a length of time such as 500 (milliseconds) or "1.5s"';
    case "rate":
      return 'a count per time such as "60/min" or { "count": 5, "per": "1s" }';
    case "list":
      return `a list, each entry ${expected(shape.of, options)}`;
    case "record":
      return `an object with one field for each ${shape.keys.what}`;
    case "object":
      return `an object with ${Object.keys(shape.fields).join(", ")}`;
    case "function":
      return "a function of a URL";
    case "either":
      return shape.of
        .filter((one) => options.allowFunctions || one.kind !== "function")
        .map((one) => expected(one, options))
        .join(", or ");
  }
}

function expectedNumber(shape: NumberShape): string {
  const kind = shape.isWhole ? "a whole number" : "a number";
  const max = shape.max >= 1_000_000 ? shape.max.toExponential().replace("+", "") : String(shape.max);
  const least = shape.isMinExcluded === true ? `above ${shape.min} and` : `from ${shape.min}`;
  const most = shape.isMinExcluded === true ? `at most ${max}` : `to ${max}`;
  return `${kind} ${least} ${most}${shape.allowInfinity === true ? ", or Infinity" : ""}`;
}
