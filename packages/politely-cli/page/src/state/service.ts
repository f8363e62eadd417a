const TOKEN = "politely-token";

/** The service said no, or could not be reached. `status` is 0 in the second case. */
export class ServiceError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The token of this tab, kept until it is closed. */
export function readToken(): string {
  return sessionStorage.getItem(TOKEN) ?? "";
}

/** Keeps the token for this tab; an empty one forgets it. */
export function keepToken(token: string): void {
  if (token === "") sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, token);
}

/** Asks the service, with the token if there is one. Rejects with a `ServiceError` that says what the service said. */
export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const token = readToken();
  // A token has no other characters, and no header could carry them.
  if (/[^\x21-\x7e]/.test(token)) throw new ServiceError(401, "That is not the token.");
  if (token !== "") headers.set("authorization", `Bearer ${token}`);
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new ServiceError(0, "The service cannot be reached.");
  }
  if (response.ok) return response;
  throw new ServiceError(response.status, await saidBy(response));
}

/** The JSON of a GET. */
export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await ask(path, signal === undefined ? {} : { signal });
  return (await response.json()) as T;
}

/** Sends JSON, or nothing. */
export async function send(method: "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<void> {
  const content =
    body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  await ask(path, { method, ...content });
}

async function saidBy(response: Response): Promise<string> {
  try {
    const problem = (await response.json()) as {
      detail?: string;
      errors?: readonly { field: string; message: string }[];
    };
    const fields = (problem.errors ?? []).map(({ field, message }) =>
      message.startsWith(field) ? message : `${field}: ${message}`,
    );
    if (fields.length > 0) return fields.join("; ");
    return problem.detail ?? `The service answered ${response.status}.`;
  } catch {
    return `The service answered ${response.status}.`;
  }
}
