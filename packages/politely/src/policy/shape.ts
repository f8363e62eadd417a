import type { Reading } from "./reading.js";

/**
 * What a value of the policy must look like, as data.
 *
 * `validate` checks values against it and `jsonSchema` writes it down for editors, so that the two never differ.
 */
export type Shape =
  | FlagShape
  | ChoiceShape
  | TextShape
  | NumberShape
  | DurationShape
  | RateShape
  | ListShape
  | RecordShape
  | ObjectShape
  | EitherShape
  | FunctionShape;

/** True or false; with `onlyTrue`, nothing but true. */
export interface FlagShape {
  readonly kind: "flag";
  readonly onlyTrue?: boolean;
}

/** One of several words. */
export interface ChoiceShape {
  readonly kind: "choice";
  readonly options: readonly string[];
  /** Said instead of the list of options where that is long: `"the name of a preset"`. */
  readonly what?: string;
  /** Where the list of options is to be found, said after a word that is none of them. */
  readonly where?: string;
}

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
  /** `min` itself is too small. */
  readonly isMinExcluded?: boolean;
  readonly allowInfinity?: boolean;
}

/** A length of time. */
export interface DurationShape {
  readonly kind: "duration";
  readonly allowZero?: boolean;
  readonly allowInfinity?: boolean;
}

/** A count per time. */
export interface RateShape {
  readonly kind: "rate";
  readonly use: "bucket" | "window";
}

/** A list. */
export interface ListShape {
  readonly kind: "list";
  readonly of: Shape;
  readonly min: number;
  readonly max: number;
}

/** An object whose keys are names given by the user. */
export interface RecordShape {
  readonly kind: "record";
  readonly of: Shape;
  readonly keys: KeyShape;
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
  /** Its name among the definitions of the JSON Schema, where it is used in several places. */
  readonly name?: string;
  readonly fields: Readonly<Record<string, Field>>;
  /** The field with an object of its own in which people forget to put theirs: `default` for `{ rate: "5/s" }`. */
  readonly inner?: string;
  readonly checks?: readonly Check[];
}

/** One field of an object. */
export interface Field {
  readonly shape: Shape;
  /** What editors show about it. */
  readonly about: string;
  readonly isRequired?: boolean;
  /** Another field without which this one has no meaning. */
  readonly needs?: string;
}

/** One of several shapes, told apart by the type of the value: no two of them take the same type. */
export interface EitherShape {
  readonly kind: "either";
  readonly of: readonly Shape[];
}

/** A function; only in code, never in a file. */
export interface FunctionShape {
  readonly kind: "function";
}

/** Reports a problem of the field that `path` leads to. */
export type Report = (path: string, message: string) => void;

/** Looks for contradictions between the fields of an object. Fields may be wrong or missing; those are reported already. */
export type Check = (value: Readonly<Record<string, unknown>>, path: string, report: Report) => void;
