import { REDIRECT_CODE } from "../failure.js";

/** An error with the code, the name and the words that axios has for a redirect which cannot be followed. */
type RedirectFailure = Error & { readonly code: string };

/** More redirects than `maxRedirects` allows. */
export function tooManyRedirects(): RedirectFailure {
  return failure("ERR_FR_TOO_MANY_REDIRECTS", "Maximum number of redirects exceeded");
}

/**
 * A redirect that leads nowhere, or that the caller's `beforeRedirect` stops. Says why, and keeps what was thrown as its cause.
 *
 * What `fetch` would call a failed fetch is left out: its cause knows more.
 */
export function redirectFailure(thrown: unknown): RedirectFailure {
  const cause = isWrapped(thrown) ? thrown.cause : thrown;
  const why = cause instanceof Error ? cause.message : String(cause);
  return failure("ERR_FR_REDIRECTION_FAILURE", `Redirected request failed: ${why}`, { cause });
}

function failure(code: string, message: string, options?: ErrorOptions): RedirectFailure {
  return Object.assign(new Error(message, options), { name: `Error [${code}]`, code });
}

function isWrapped(error: unknown): error is Error & { readonly cause: Error } {
  if (!(error instanceof TypeError) || !(error.cause instanceof Error)) return false;
  return "code" in error.cause && error.cause.code === REDIRECT_CODE;
}
