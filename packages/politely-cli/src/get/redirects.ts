/** How many redirects of one page are followed, as `fetch` has it. */
const MAX_REDIRECTS = 20;
/** The code of a redirect that cannot be followed. */
export const REDIRECT = "POLITELY_REDIRECT";

/**
 * Where an answer of `from` leads, without its user name or password. The bytes of a location are read as UTF-8.
 *
 * Throws when the location is no URL, not one of http or https, or has a user name, and after 20 redirects.
 */
export function redirectTarget(from: string, location: string, redirects: number): string {
  const base = new URL(from);
  const text = /[^\0-\xff]/.test(location) ? location : Buffer.from(location, "latin1").toString();
  if (!URL.canParse(text, from)) throw unfollowed(`${base.host} redirects to "${shown(text)}", which is no URL`);
  const to = new URL(text, from);
  if (!/^https?:$/.test(to.protocol)) {
    throw unfollowed(`${base.host} redirects to ${to.protocol} instead of http or https`);
  }
  if (to.username !== "" || to.password !== "") {
    throw unfollowed(`${from} redirects to a URL with a user name or password, which is not followed`);
  }
  if (redirects >= MAX_REDIRECTS) {
    throw unfollowed(`${from} redirects more than ${MAX_REDIRECTS} times, last to ${shown(text)}`);
  }
  if (to.hash === "") to.hash = base.hash;
  return to.href;
}

/** A location for people: at most 200 characters of it, and no password. */
function shown(location: string): string {
  return location.slice(0, 200).replace(/^([^/?#]*[/\\]{2})[^/\\?#]*@/, "$1");
}

function unfollowed(message: string): Error {
  return Object.assign(new Error(message), { code: REDIRECT });
}
