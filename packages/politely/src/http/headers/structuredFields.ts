/** The value of an item, without its parameters. A date is in seconds since 1970; a display string is Unicode text. */
export type BareItem =
  | { readonly kind: "integer" | "decimal" | "date"; readonly value: number }
  | { readonly kind: "string" | "token" | "display"; readonly value: string }
  | { readonly kind: "boolean"; readonly value: boolean }
  | { readonly kind: "bytes"; readonly value: Uint8Array };

/** What follows an item after `;`, in order. A name given twice keeps its first place and its last value. */
export type Parameters = ReadonlyMap<string, BareItem>;

/** One value with its parameters. */
export interface Item {
  readonly bare: BareItem;
  readonly parameters: Parameters;
}

/** Several items in brackets, with parameters of their own. */
export interface InnerList {
  readonly items: readonly Item[];
  readonly parameters: Parameters;
}

/** What a list or a dictionary holds. */
export type Member = Item | InnerList;

/**
 * Reads a list of RFC 9651; undefined when the text is not exactly that. An empty text is an empty list.
 *
 * Lines of a field sent several times are joined with a comma before. Never throws; the work is linear in the length.
 */
export function parseList(text: string): Member[] | undefined {
  return new FieldReader(text).list();
}

/** Reads a dictionary of RFC 9651 in the order of its keys; undefined when the text is not exactly that. Never throws. */
export function parseDictionary(text: string): Map<string, Member> | undefined {
  return new FieldReader(text).dictionary();
}

/** Whether a member is a list in brackets. */
export function isInnerList(member: Member): member is InnerList {
  return "items" in member;
}

const NO_PARAMETERS: Parameters = new Map();
const TRUE: BareItem = { kind: "boolean", value: true };
const FALSE: BareItem = { kind: "boolean", value: false };

const SPACE = 0x20;
const TAB = 0x09;
const QUOTE = 0x22;
const PERCENT = 0x25;
const OPEN = 0x28;
const CLOSE = 0x29;
const STAR = 0x2a;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const QUESTION = 0x3f;
const AT = 0x40;
const BACKSLASH = 0x5c;

const MAX_INTEGER_DIGITS = 15;
const MAX_DECIMAL_WHOLE_DIGITS = 12;
const MAX_DECIMAL_FRACTION_DIGITS = 3;

const keyCharacters = characterSet("abcdefghijklmnopqrstuvwxyz0123456789_-.*");
const tokenCharacters = characterSet("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~:/");

/** Walks over a field once, from left to right. Each method leaves `at` behind what it read, or gives undefined. */
class FieldReader {
  private at = 0;

  constructor(private readonly text: string) {}

  list(): Member[] | undefined {
    const members: Member[] = [];
    this.skipSpaces();
    while (this.at < this.text.length) {
      const member = this.member();
      if (member === undefined) return undefined;
      members.push(member);
      if (!this.isAtNextMember()) return undefined;
    }
    return members;
  }

  dictionary(): Map<string, Member> | undefined {
    const members = new Map<string, Member>();
    this.skipSpaces();
    while (this.at < this.text.length) {
      const key = this.key();
      if (key === undefined) return undefined;
      const member = this.take(EQUALS) ? this.member() : this.withParameters(TRUE);
      if (member === undefined) return undefined;
      members.set(key, member);
      if (!this.isAtNextMember()) return undefined;
    }
    return members;
  }

  /** Goes over the comma to the next member, or to the end of the text. A comma with nothing behind it is wrong. */
  private isAtNextMember(): boolean {
    this.skipBlanks();
    if (this.at === this.text.length) return true;
    if (!this.take(COMMA)) return false;
    this.skipBlanks();
    return this.at < this.text.length;
  }

  private member(): Member | undefined {
    return this.peek() === OPEN ? this.innerList() : this.item();
  }

  private innerList(): InnerList | undefined {
    this.at++;
    const items: Item[] = [];
    for (;;) {
      this.skipSpaces();
      if (this.take(CLOSE)) break;
      const item = this.item();
      if (item === undefined) return undefined;
      items.push(item);
      if (this.peek() !== SPACE && this.peek() !== CLOSE) return undefined;
    }
    const parameters = this.parameters();
    return parameters && { items, parameters };
  }

  private item(): Item | undefined {
    const bare = this.bareItem();
    return bare && this.withParameters(bare);
  }

  private withParameters(bare: BareItem): Item | undefined {
    const parameters = this.parameters();
    return parameters && { bare, parameters };
  }

  private parameters(): Parameters | undefined {
    if (this.peek() !== SEMICOLON) return NO_PARAMETERS;
    const parameters = new Map<string, BareItem>();
    while (this.take(SEMICOLON)) {
      this.skipSpaces();
      const key = this.key();
      if (key === undefined) return undefined;
      const value = this.take(EQUALS) ? this.bareItem() : TRUE;
      if (value === undefined) return undefined;
      parameters.set(key, value);
    }
    return parameters;
  }

  private key(): string | undefined {
    const first = this.peek();
    if (first !== STAR && !(first >= 0x61 && first <= 0x7a)) return undefined;
    return this.run(keyCharacters);
  }

  private bareItem(): BareItem | undefined {
    const first = this.peek();
    if (isDigit(first) || first === MINUS) return this.number();
    if (first === QUOTE) return this.string();
    if (first === STAR || isLetter(first)) return { kind: "token", value: this.run(tokenCharacters) };
    if (first === COLON) return this.bytes();
    if (first === QUESTION) return this.boolean();
    if (first === AT) return this.date();
    return first === PERCENT ? this.displayString() : undefined;
  }

  private number(): BareItem | undefined {
    const start = this.at;
    this.take(MINUS);
    const wholeDigits = this.digits();
    if (wholeDigits === 0) return undefined;
    if (!this.take(DOT)) {
      if (wholeDigits > MAX_INTEGER_DIGITS) return undefined;
      // Adding zero makes a plain 0 of -0.
      return { kind: "integer", value: Number(this.text.slice(start, this.at)) + 0 };
    }
    const fractionDigits = this.digits();
    if (wholeDigits > MAX_DECIMAL_WHOLE_DIGITS) return undefined;
    if (fractionDigits === 0 || fractionDigits > MAX_DECIMAL_FRACTION_DIGITS) return undefined;
    return { kind: "decimal", value: Number(this.text.slice(start, this.at)) + 0 };
  }

  private digits(): number {
    const start = this.at;
    while (isDigit(this.peek())) this.at++;
    return this.at - start;
  }

  private string(): BareItem | undefined {
    this.at++;
    let value = "";
    let start = this.at;
    for (;;) {
      const code = this.peek();
      if (code === QUOTE) break;
      if (code === BACKSLASH) {
        value += this.text.slice(start, this.at);
        this.at++;
        start = this.at;
        if (this.peek() !== QUOTE && this.peek() !== BACKSLASH) return undefined;
      } else if (!isPrintable(code)) {
        return undefined;
      }
      this.at++;
    }
    value += this.text.slice(start, this.at);
    this.at++;
    return { kind: "string", value };
  }

  private bytes(): BareItem | undefined {
    const end = this.text.indexOf(":", this.at + 1);
    if (end === -1) return undefined;
    const value = decodeBase64(this.text.slice(this.at + 1, end));
    this.at = end + 1;
    return value && { kind: "bytes", value };
  }

  private boolean(): BareItem | undefined {
    this.at++;
    if (this.take(ZERO)) return FALSE;
    return this.take(ZERO + 1) ? TRUE : undefined;
  }

  private date(): BareItem | undefined {
    this.at++;
    const seconds = this.number();
    return seconds?.kind === "integer" ? { kind: "date", value: seconds.value } : undefined;
  }

  private displayString(): BareItem | undefined {
    this.at++;
    if (!this.take(QUOTE)) return undefined;
    const start = this.at;
    while (isPrintable(this.peek()) && this.peek() !== QUOTE) this.at++;
    const encoded = this.text.slice(start, this.at);
    if (!this.take(QUOTE) || /%(?![\da-f]{2})/.test(encoded)) return undefined;
    try {
      return { kind: "display", value: decodeURIComponent(encoded) };
    } catch {
      // The bytes are not UTF-8.
      return undefined;
    }
  }

  private run(characters: Uint8Array): string {
    const start = this.at;
    while (characters[this.peek()] === 1) this.at++;
    return this.text.slice(start, this.at);
  }

  /** The code at the place read next; -1, which nothing equals, at the end. */
  private peek(): number {
    return this.at < this.text.length ? this.text.charCodeAt(this.at) : -1;
  }

  private take(code: number): boolean {
    if (this.peek() !== code) return false;
    this.at++;
    return true;
  }

  private skipSpaces(): void {
    while (this.peek() === SPACE) this.at++;
  }

  private skipBlanks(): void {
    while (this.peek() === SPACE || this.peek() === TAB) this.at++;
  }
}

/** Bytes of base64 text, with or without its padding; undefined when there is something else in it. */
function decodeBase64(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z\d+/]*={0,2}$/.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    // A length that no number of bytes gives.
    return undefined;
  }
}

function characterSet(characters: string): Uint8Array {
  const set = new Uint8Array(128);
  for (const character of characters) set[character.charCodeAt(0)] = 1;
  return set;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function isLetter(code: number): boolean {
  return (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a);
}

function isPrintable(code: number): boolean {
  return code >= 0x20 && code < 0x7f;
}
