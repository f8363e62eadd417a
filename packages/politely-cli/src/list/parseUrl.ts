import { UsageError } from "../errors.js";

/** Longer ones are refused by most servers, and are more likely a list that lost its line ends. */
const MAX_LENGTH = 8_192;

/**
 * Makes what somebody wrote into a URL: `example.com/x` gets `https://`, a fragment is dropped.
 *
 * Throws `UsageError`, with `place` in front, for what is not an http or https URL, carries a password, or is longer than 8,192 characters.
 */
export function parseUrl(text: string, place: string): string {
  if (text.length > MAX_LENGTH) {
    throw new UsageError(`${place}${show(text)} is ${text.length} characters long; at most ${MAX_LENGTH} make a URL.`);
  }
  const hasScheme = /^[a-z][a-z\d+.-]*:\/\//i.test(text);
  const written = hasScheme ? text : `https://${text}`;
  if (!URL.canParse(written) || /\s/.test(text)) {
    throw new UsageError(`${place}${show(text)} is not a URL. Write one such as https://example.com/page.`);
  }
  const url = new URL(written);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new UsageError(`${place}${show(text)} is not a URL of http or https.`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new UsageError(`${place}a URL with a user name or password in it is not fetched; leave that part out.`);
  }
  if (url.hash !== "" || url.href.endsWith("#")) url.hash = "";
  return url.href;
}

function show(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}...` : text);
}
