import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open, rm } from "node:fs/promises";

/** A file that is written while its bytes arrive. */
export class LargeFile {
  bytes = 0;
  readonly #hash: Hash = createHash("sha256");

  private constructor(
    readonly path: string,
    readonly handle: FileHandle,
  ) {}

  static async open(path: string): Promise<LargeFile> {
    return new LargeFile(path, await open(path, "w"));
  }

  async write(pieces: readonly Uint8Array[]): Promise<void> {
    for (const piece of pieces) {
      this.#hash.update(piece);
      await this.handle.writeFile(piece);
      this.bytes += piece.length;
    }
  }

  /** Closes it, and resolves to the SHA-256 of what was written, in hexadecimal. */
  async close(): Promise<string> {
    await this.handle.close();
    return this.#hash.digest("hex");
  }

  /** Closes and removes it. Never rejects. */
  async discard(): Promise<void> {
    await this.handle.close().catch(() => undefined);
    await rm(this.path, { force: true }).catch(() => undefined);
  }
}
