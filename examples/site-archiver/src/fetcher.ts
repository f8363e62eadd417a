import type { Limiter } from "politely";

/** A page larger than this fails: an archive of pages has no room for films. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Gets pages of one site, each when its turn has come. */
export class Fetcher {
  constructor(
    readonly baseUrl: string,
    readonly polite: Limiter,
  ) {}

  /** How long the next page would wait now, in milliseconds; 0 when it need not. */
  remainingMs(path: string): number {
    return this.polite.check(this.baseUrl + path).waitMs;
  }

  /** Waits its turn and resolves to the body. Rejects when the site answers with an error, with more than 16 MiB, or not within 30 s, and when `signal` is aborted. */
  async fetch(path: string, signal: AbortSignal): Promise<Uint8Array> {
    const response = await this.polite.fetch(this.baseUrl + path, { signal, politely: { timeout: "30s" } });
    if (!response.ok) throw new Error(`the site answered ${response.status}`);
    const chunks: Uint8Array[] = [];
    let byteCount = 0;
    for await (const chunk of response.body ?? []) {
      byteCount += chunk.byteLength;
      // Leaving the loop cancels the body.
      if (byteCount > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }
}
