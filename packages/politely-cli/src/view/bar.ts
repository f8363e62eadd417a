import type { Look } from "./look.js";

/** What a bar shows. */
export interface BarParts {
  readonly total: number;
  readonly done: number;
  /** Of `done`, those that went wrong. */
  readonly failed: number;
}

/**
 * A bar of `width` columns: what went well, what went wrong, what is left.
 *
 * It is full only when all is done, and shows at least one column for what went wrong once something did. Numbers beyond the total
 * count as the total.
 */
export function barText({ total, done, failed }: BarParts, width: number, { paint, glyphs }: Look): string {
  const share = (count: number): number => (total <= 0 ? 0 : Math.min(1, Math.max(0, count / total)) * width);
  const doneWidth = total <= 0 ? width : Math.floor(share(done));
  const wanted = failed > 0 ? Math.max(1, Math.round(share(failed))) : 0;
  const failedWidth = Math.min(wanted, doneWidth);
  return [
    paint.green(glyphs.full.repeat(doneWidth - failedWidth)),
    paint.red(glyphs.failed.repeat(failedWidth)),
    paint.dim(glyphs.empty.repeat(width - doneWidth)),
  ].join("");
}
