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
  /** What was said of it. */
  readonly error: string;
  count: number;
}

/** Remembers what was not fetched in a run, by the reason. */
export class Problems {
  readonly #reasons = new Map<string, Reason>();

  /** Takes a line of the index. Those of URLs that were fetched are passed over. */
  add({ url, outcome, error = "" }: IndexLine): void {
    if (outcome !== "failed" && outcome !== "refused") return;
    // How long something would have taken is different for each, and no other reason.
    const kind = error.replace(/\d[\d.,]* (ms|s|min|h|d)\b/g, "");
    const reason = this.#reasons.get(kind);
    if (reason !== undefined) reason.count += 1;
    else if (this.#reasons.size < MAX_REASONS) this.#reasons.set(kind, { url, error, count: 1 });
  }

  /** In one line: how many were not fetched, and for the first five reasons a URL and how many more. */
  text({ failed, total }: Pick<GetSummary, "failed" | "total">): string {
    const reasons = [...this.#reasons.values()].slice(0, MAX_SHOWN);
    const shown = reasons.map(({ url, error, count }) => {
      const short = url.length > LONGEST_URL ? `${url.slice(0, LONGEST_URL - 1)}…` : url;
      return `${short}${count > 1 ? ` and ${countText(count - 1)} more` : ""} (${error})`;
    });
    const shownCount = reasons.reduce((sum, { count }) => sum + count, 0);
    const more = failed > shownCount && shownCount > 0 ? ", …" : "";
    const count = `${countText(failed)} of ${countText(total)} ${failed === 1 ? "was" : "were"}`;
    return `${count} not fetched${shown.length === 0 ? "" : `: ${shown.join(", ")}${more}`}`;
  }
}
