import { type Limiter, politely } from "politely";
import { UsageError } from "../errors.js";

/** Longer ones are refused by most servers, and are more likely a list that lost its line ends. */
const MAX_LENGTH = 8_192;

/**
 * Makes what somebody wrote into a URL: `example.com/x` gets `https://`, a fragment is dropped.
 *
 * Throws `UsageError`, with `place` in front, for what is not an http or https URL, a single word or a path included, carries a password, is longer than 8,192 characters, or
 * names a host that the limiter does not take.
 */
export function parseUrl(text: string, place: string): string {
  if (text.length > MAX_LENGTH) {
    throw new UsageError(`${place}${show(text)} is ${text.length} characters long; at most ${MAX_LENGTH} make a URL.`);
  }
  if (/^(["']).*\1$/.test(text)) throw new UsageError(`${place}${show(text)} is in quotes; leave them out.`);
  const hasScheme = /^[a-z][a-z\d+.-]*:\/\//i.test(text);
  // What stands before a colon is a host only where a port stands behind it.
  if (!hasScheme && /^[a-z][a-z\d+.-]*:(?!\d+([/?#]|$))/i.test(text)) {
    throw new UsageError(
      `${place}${show(text)} is not a URL of http or https. Write one such as https://example.com/page.`,
    );
  }
  const written = hasScheme ? text : `https://${text}`;
  if (!URL.canParse(written) || /\s/.test(text) || !(hasScheme || beginsWithHost(text))) {
    throw new UsageError(`${place}${show(text)} is not a URL. Write one such as https://example.com/page.`);
  }
  const url = new URL(written);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new UsageError(`${place}${show(text)} is not a URL of http or https.`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new UsageError(`${place}a URL with a user name or password in it is not fetched; leave that part out.`);
  }
  checkHost(url, `${place}the host of ${show(text)}`);
  if (url.hash !== "" || url.href.endsWith("#")) url.hash = "";
  return url.href;
}

/** Whether a text without a scheme begins with what can only be a host. A single word is more likely the title of a column. */
export function beginsWithHost(text: string): boolean {
  const [host = ""] = text.replace(/^\/\//, "").split(/[/?#]/, 1);
  return /[.:]/.test(host) || host.toLowerCase() === "localhost";
}

/** Lower-case names without anything special, up to the length of one part: certain without asking. */
const PLAIN_HOST = /^(?=.{1,63}$)[a-z\d-]+(\.[a-z\d-]+)*$/;

let anyLimiter: Limiter | undefined;

/** The limiter knows what a host is. It would say so only once the list is begun, and without the line. */
function checkHost({ hostname, href }: URL, what: string): void {
  if (PLAIN_HOST.test(hostname)) return;
  anyLimiter ??= politely({});
  try {
    anyLimiter.explain(href);
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    throw new UsageError(`${what} ${error.message.replace(/^target's host /, "")}`);
  }
}

function show(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}...` : text);
}
