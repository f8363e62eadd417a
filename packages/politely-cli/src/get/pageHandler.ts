import type { Dispatcher } from "undici";
import type { IncomingHttpHeaders } from "undici/types/header.js";
import { bytesText } from "../view/amounts.js";
import type { BodyFiles, SavedBody } from "./bodyFiles.js";
import type { LargeFile } from "./largeFile.js";
import { isPart, tooLarge, tooSlow } from "./verdict.js";

/** Bodies up to this size are held in memory and written in one go. */
const SMALL_BYTES = 65_536;
/** The site is asked to wait while so much is on its way to the disk. */
const MAX_BEHIND = 262_144;
/** Of a body that is not kept, so much is read to keep its connection. */
const MAX_UNKEPT = 131_072;

/** A body that comes slower than this for as long as a site may be silent counts as silence, in bytes a second. */
const LEAST_PACE = 10;

/** What a request for a page came to. */
export interface PageAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Resolves once the body is on disk under its name; undefined where it is not kept. */
  readonly saved: Promise<SavedBody> | undefined;
  /** Resolves once the last byte has arrived or it was broken off; undefined when that is so already. */
  readonly rest: Promise<void> | undefined;
}

/** What becomes of an answer. */
export interface PageRules {
  /** A body that is larger is broken off. */
  readonly maxBytes: number;
  /** The longest silence of a site. */
  readonly timeoutMs: number;
  /** Whether an answer holds its host, so that it had better be known at its headers. */
  readonly isHolding: (status: number, headers: IncomingHttpHeaders) => boolean;
}

/** How one request ends: exactly one of the two is called, once. */
export interface PageEnd {
  readonly resolve: (answer: PageAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Receives one answer from undici, without a stream in between: that takes half the time for a small page.
 *
 * The body of a 2xx goes to disk unless it is a part: a small one when it is complete, a larger one while it arrives, with at most 256 KiB in memory. Other bodies
 * are read and dropped; one that is longer than 128 KiB is broken off. The answer is given at the last byte; one that holds its host at the
 * headers, so that the host is held from then on, with a `rest` that tells when its place is free.
 */
export class PageHandler implements Dispatcher.DispatchHandler {
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #isKept = false;
  #isOver = false;
  /** From when on its pace is measured, and what has arrived since. */
  #pacedFromMs = performance.now();
  #pacedBytes = 0;
  /** Bytes that were taken over for the disk and are not there yet. */
  #behind = 0;
  #restIsOver: () => void = () => undefined;
  #large: Promise<LargeFile> | undefined = undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(
    readonly url: string,
    readonly files: BodyFiles,
    readonly end: PageEnd,
    readonly rules: PageRules,
  ) {}

  onRequestStart(): void {
    // Nothing to set up: a request is never broken off alone.
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#startPace();
    this.#isKept = status < 300 && !isPart(status, headers["content-range"]);
    const { maxBytes, isHolding } = this.rules;
    if (this.#isKept) {
      if (Number(headers["content-length"]) > maxBytes) controller.abort(this.#tooLarge());
    } else if (isHolding(status, headers)) {
      const rest = new Promise<void>((resolve) => {
        this.#restIsOver = resolve;
      });
      this.#resolve(undefined, rest);
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#isCrawling(piece.length)) {
      controller.abort(tooSlow(`its body comes slower than ${LEAST_PACE} bytes a second`));
      return;
    }
    if (!this.#isKept) {
      if (this.#bytes > MAX_UNKEPT) {
        this.#resolve(undefined);
        controller.abort(new Error("the rest of the body is not needed"));
      }
      return;
    }
    if (this.#bytes > this.rules.maxBytes) {
      controller.abort(this.#tooLarge());
      return;
    }
    this.#pieces.push(piece);
    if (this.#large !== undefined || this.#bytes > SMALL_BYTES) this.#spill(controller);
  }

  onResponseEnd(): void {
    this.#restIsOver();
    if (!this.#isKept) this.#resolve(undefined);
    else if (this.#large === undefined) this.#resolve(this.files.saveSmall(this.url, this.#pieces, this.#bytes));
    else this.#resolve(this.#saveLarge(this.#large));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#restIsOver();
    // One that could not be opened has nothing to be removed; what went wrong is told by whoever writes to it.
    this.#large?.then((large) => large.discard()).catch(() => undefined);
    if (this.#isOver) return;
    this.#isOver = true;
    this.end.reject(error);
  }

  /** Whether what has come for as long as the site may be silent is next to nothing. Undici's own timer hears of any byte. */
  #isCrawling(bytes: number): boolean {
    this.#pacedBytes += bytes;
    const tookMs = performance.now() - this.#pacedFromMs;
    if (tookMs < this.rules.timeoutMs) return false;
    const isCrawling = this.#pacedBytes * 1_000 < LEAST_PACE * tookMs;
    this.#startPace();
    return isCrawling;
  }

  #startPace(): void {
    this.#pacedFromMs = performance.now();
    this.#pacedBytes = 0;
  }

  #tooLarge(): Error {
    return tooLarge(`its body is larger than --max-size, ${bytesText(this.rules.maxBytes)}`);
  }

  #resolve(saved: Promise<SavedBody> | undefined, rest?: Promise<void>): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // Whoever waits for it hears of a failure; a repetition may come before.
    saved?.catch(() => undefined);
    this.end.resolve({ status: this.#status, headers: this.#headers, saved, rest });
  }

  /** Passes what has arrived on to the file. */
  #spill(controller: Dispatcher.DispatchController): void {
    this.#large ??= this.files.openLarge();
    const large = this.#large;
    const pieces = this.#pieces;
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
    this.#pieces = [];
    this.#behind += bytes;
    if (this.#behind > MAX_BEHIND && !controller.paused) controller.pause();
    const write = async (): Promise<void> => {
      await (await large).write(pieces);
      this.#behind -= bytes;
      if (this.#behind > MAX_BEHIND || !controller.paused) return;
      // It was this machine that was slow.
      this.#startPace();
      controller.resume();
    };
    this.#writing = this.#writing.then(write);
    this.#writing.catch((error: Error) => {
      if (!controller.aborted) controller.abort(error);
    });
  }

  async #saveLarge(opening: Promise<LargeFile>): Promise<SavedBody> {
    const large = await opening;
    try {
      await this.#writing;
      return await this.files.saveLarge(this.url, large);
    } catch (error) {
      await large.discard();
      throw error;
    }
  }
}
