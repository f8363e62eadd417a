import { BetweenPrototypes, own } from "../betweenPrototypes.js";
import { joined } from "../joined.js";
import { sayTheSame } from "../responseCopy.js";
import type { Tap } from "./tap.js";

/** The ways to read a whole body that need not go through its stream. */
const READERS = {
  text: textOf,
  json: (chunks: readonly Uint8Array[]): unknown => JSON.parse(textOf(chunks)),
  arrayBuffer: (chunks: readonly Uint8Array[]): ArrayBuffer => joined(chunks).buffer,
  bytes: joined,
} as const;
type Reader = keyof typeof READERS;

/** What is known of a response whose body comes through a tap. */
interface Tapped {
  readonly tap: Tap;
  /** The stream that the platform has for it, if nobody has asked for a copy. */
  readonly stream: ReadableStream<Uint8Array>;
  isTaken: boolean;
}

/** Where a response keeps what is known of it. */
const TAPPED = Symbol("politely.tapped");
const utf8 = new TextDecoder();

/** The same response: what reads its body as a whole takes it from `tap`, if that has it. */
export function tapped(response: Response, tap: Tap, stream: ReadableStream<Uint8Array>): Response {
  (response as { [TAPPED]?: Tapped })[TAPPED] = { tap, stream, isTaken: false };
  // What it was told to say of itself, its copies have to say as well.
  if (tap.isHeld || Object.hasOwn(response, "redirected")) prototypes.adopt(response);
  return response;
}

/** The tap of a response that has one. */
export function tapOf(response: Response): Tap | undefined {
  return tappedOf(response)?.tap;
}

/** Undefined also for what is no response: a method that is called without one. */
function tappedOf(response: Response): Tapped | undefined {
  return (response as { readonly [TAPPED]?: Tapped } | undefined)?.[TAPPED];
}

const prototypes = new BetweenPrototypes((base, self) => {
  const properties: PropertyDescriptorMap = {
    bodyUsed: {
      get(this: Response): boolean {
        return tappedOf(this)?.isTaken === true || own(base, this, "bodyUsed");
      },
    },
    clone: {
      value: function clone(this: Response): Response {
        const copy = base.clone.call(this);
        sayTheSame(copy, this);
        // So that its copies say the same, too.
        return Object.setPrototypeOf(copy, self()) as Response;
      },
    },
  };
  for (const name of Object.keys(READERS) as Reader[]) {
    if (name in base) properties[name] = { value: takingReader(base, name) };
  }
  return properties;
});

function takingReader(base: Response, name: Reader) {
  const read = base[name] as () => Promise<unknown>;
  const convert: (chunks: readonly Uint8Array[]) => unknown = READERS[name];
  return function takeWhole(this: Response): Promise<unknown> {
    const known = tappedOf(this);
    if (known === undefined || !canTake(known, own(base, this, "body"))) return read.call(this);
    const { tap, stream } = known;
    known.isTaken = true;
    // Nobody else gets it, and whoever tries hears from the platform why.
    const reader = stream.getReader();
    return new Promise((resolve, reject) => {
      tap.take((chunks) => {
        if (chunks === undefined) {
          reader.releaseLock();
          resolve(read.call(this));
          return;
        }
        try {
          resolve(convert(chunks));
        } catch (error) {
          reject(error);
        }
      });
    });
  };
}

function canTake({ tap, stream }: Tapped, body: unknown): boolean {
  return tap.isHeld && body === stream && !stream.locked;
}

function textOf(chunks: readonly Uint8Array[]): string {
  return utf8.decode(chunks.length === 1 ? chunks[0] : joined(chunks));
}
