import { createHash, timingSafeEqual } from "node:crypto";

/** A token that callers have to know. Only its hash is kept; what differs takes as long to refuse as what is nearly right. */
export class Secret {
  readonly #digest: Buffer;

  constructor(text: string) {
    this.#digest = digestOf(text);
  }

  /** Whether this is the token. */
  is(given: string): boolean {
    return timingSafeEqual(digestOf(given), this.#digest);
  }
}

/** All digests have one length, whatever the text's. */
function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
