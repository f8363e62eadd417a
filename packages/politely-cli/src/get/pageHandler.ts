import type { Dispatcher } from "undici";
import type { IncomingHttpHeaders } from "undici/types/header.js";
import type { BodyFiles, SavedBody } from "./bodyFiles.js";
import type { LargeFile } from "./largeFile.js";

/** Bodies up to this size are held in memory and written in one go. */
const SMALL_BYTES = 65_536;
/** The site is asked to wait while so much is on its way to the disk. */
const MAX_BEHIND = 262_144;
/** Of a body that is not kept, so much is read to keep its connection. */
const MAX_UNKEPT = 131_072;

/** What a request for a page came to. */
export interface PageAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Resolves once the body is on disk under its name; undefined where it is not kept. */
  readonly saved: Promise<SavedBody> | undefined;
}

/** How one request ends: exactly one of the two is called, once. */
export interface PageEnd {
  readonly resolve: (answer: PageAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Receives one answer from undici, without a stream in between: that takes half the time for a small page.
 *
 * The body of a 2xx goes to disk: a small one when it is complete, a larger one while it arrives, with at most 256 KiB in memory. Other bodies
 * are read and dropped; one that is longer than 128 KiB is broken off. The answer is given at the last byte, that of a site in trouble or asking to be left alone at
 * its headers: its host is held then, so nothing takes the place meanwhile.
 */
export class PageHandler implements Dispatcher.DispatchHandler {
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #isKept = false;
  #isOver = false;
  /** Bytes that were taken over for the disk and are not there yet. */
  #behind = 0;
  #large: Promise<LargeFile> | undefined = undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(
    readonly url: string,
    readonly files: BodyFiles,
    readonly end: PageEnd,
  ) {}

  onRequestStart(): void {
    // Nothing to set up: a request is never broken off alone.
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#isKept = status < 300;
    if (!this.#isKept && !isCalm(status)) this.#resolve(undefined);
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#bytes += piece.length;
    if (!this.#isKept) {
      if (this.#bytes > MAX_UNKEPT) {
        this.#resolve(undefined);
        controller.abort(new Error("the rest of the body is not needed"));
      }
      return;
    }
    this.#pieces.push(piece);
    if (this.#large !== undefined || this.#bytes > SMALL_BYTES) this.#spill(controller);
  }

  onResponseEnd(): void {
    if (!this.#isKept) this.#resolve(undefined);
    else if (this.#large === undefined) this.#resolve(this.files.saveSmall(this.url, this.#pieces, this.#bytes));
    else this.#resolve(this.#saveLarge(this.#large));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    void this.#large?.then((large) => large.discard());
    if (this.#isOver) return;
    this.#isOver = true;
    this.end.reject(error);
  }

  #resolve(saved: Promise<SavedBody> | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // Whoever waits for it hears of a failure; a repetition may come before.
    saved?.catch(() => undefined);
    this.end.resolve({ status: this.#status, headers: this.#headers, saved });
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
      if (this.#behind <= MAX_BEHIND && controller.paused) controller.resume();
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

/** Whether an answer slows nobody down. */
function isCalm(status: number): boolean {
  return status < 500 && ![403, 408, 418, 420, 429].includes(status);
}
