import { randomFillSync } from "node:crypto";

const ID_BYTES = 16;
/** Asking for random bytes costs much the same however many they are. */
const IDS_AT_ONCE = 128;

/** Makes ids that cannot be guessed: 22 characters, 128 random bits each. */
export class PermitIds {
  readonly #bytes = Buffer.alloc(ID_BYTES * IDS_AT_ONCE);
  #at = this.#bytes.length;

  next(): string {
    if (this.#at === this.#bytes.length) {
      randomFillSync(this.#bytes);
      this.#at = 0;
    }
    const from = this.#at;
    this.#at += ID_BYTES;
    return this.#bytes.toString("base64url", from, this.#at);
  }
}
