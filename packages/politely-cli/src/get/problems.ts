import { countText } from "../words.js";
import type { IndexLine } from "./indexLine.js";
import type { GetSummary } from "./observer.js";

const MAX_SHOWN = 5;
/** So many reasons are told apart. */
const MAX_REASONS = 100;
const LONGEST_URL = 120;

interface Reason {
  /** The first URL that ended so. */
  readonly url: string;
  count: number;
}

/** Remembers what was not fetched in a run, by the reason. */
export class Problems {
  readonly #reasons = new Map<string, Reason>();

  /** Takes a line of the index. Those of URLs that were fetched are passed over. */
  add({ url, outcome, error = "" }: IndexLine): void {
    if (outcome !== "failed" && outcome !== "refused") return;
    const reason = this.#reasons.get(error);
    if (reason !== undefined) reason.count += 1;
    else if (this.#reasons.size < MAX_REASONS) this.#reasons.set(error, { url, count: 1 });
  }

  /** In one line: how many were not fetched, and for the first five reasons a URL and how many more. */
  text({ failed, total }: Pick<GetSummary, "failed" | "total">): string {
    const reasons = [...this.#reasons].slice(0, MAX_SHOWN);
    const shown = reasons.map(([error, { url, count }]) => {
      const short = url.length > LONGEST_URL ? `${url.slice(0, LONGEST_URL - 1)}…` : url;
      return `${short}${count > 1 ? ` and ${countText(count - 1)} more` : ""} (${error})`;
    });
    const shownCount = reasons.reduce((sum, [, { count }]) => sum + count, 0);
    const more = failed > shownCount && shownCount > 0 ? ", …" : "";
    return `${countText(failed)} of ${countText(total)} were not fetched${shown.length === 0 ? "" : `: ${shown.join(", ")}${more}`}`;
  }
}
