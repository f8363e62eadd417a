import { describe, expect, it } from "vitest";
import { failureOf } from "../../../src/http/failure.js";
import { scriptedSite } from "./scripted.js";

/** An error as the name, the words and the code make it. */
function failure(name: string, message: string, code?: string): Error {
  return Object.assign(new Error(message), { name }, code === undefined ? {} : { code });
}

/** What an ordinary mistake in a wrapper of `fetch` throws. */
function mistake(): unknown {
  try {
    return (null as unknown as { page: unknown }).page;
  } catch (error) {
    return error;
  }
}

const closed = "error sending request for url (https://a.example/): connection closed before message completed";

describe("a failure as another runtime reports it", () => {
  it.each([
    ["Deno's connection that closed", failure("TypeError", closed), "server_error"],
    ["Deno's body that broke off", failure("TypeError", "error reading a body from connection"), "server_error"],
    ["Bun's refused connection", failure("Error", "Unable to connect.", "ConnectionRefused"), "server_error"],
    ["Bun's closed connection", failure("Error", "The socket was closed.", "ConnectionClosed"), "server_error"],
    ["Bun's socket that did not open", failure("Error", "Was there a typo?", "FailedToOpenSocket"), "server_error"],
    ["Bun's redirect that was not wanted", failure("Error", "redirect", "UnexpectedRedirect"), undefined],
    ["a worker's lost connection", failure("Error", "Network connection lost."), "server_error"],
    ["a mistake in a wrapper", mistake(), undefined],
    ["a body that was read before", failure("TypeError", "Body is unusable: Body has already been read"), undefined],
  ])("%s", (_name, error, outcome) => {
    expect(failureOf(error)).toBe(outcome);
  });

  it.each([
    ["Deno's closed connection", failure("TypeError", closed)],
    ["a mistake in a wrapper of fetch, after the answer", mistake() as Error],
  ])("does not give a start back that the site has seen: %s", async (_name, error) => {
    const { clock, polite, seen } = scriptedSite({ default: { window: "1/min", backoff: "none" } }, () => error);
    const pages = [1, 2, 3].map((page) => polite.fetch(`https://a.example/${page}`).catch(() => "failed"));
    await clock.advance(59_000);
    expect(seen).toHaveLength(1);
    await clock.runToEnd();
    expect(await Promise.all(pages)).toEqual(["failed", "failed", "failed"]);
  });

  it("is sent again, where the policy says so, when the connection was refused under Bun", async () => {
    const refused = failure("Error", "Unable to connect.", "ConnectionRefused");
    const http = { retry: { attempts: 2 } };
    const { clock, polite, seen } = scriptedSite({ default: { backoff: "none" }, http }, (index) =>
      index === 0 ? refused : 200,
    );
    const page = polite.fetch("https://a.example/");
    await clock.runToEnd();
    expect((await page).status).toBe(200);
    expect(seen).toHaveLength(2);
  });
});

describe("a request that the platform itself refuses to make gives its unit back", () => {
  const headers = { "a b": "1" };
  const body = new ReadableStream();
  it.each([
    ["for its method", { method: "b a d" }],
    ["for a method that is never used", { method: "TRACE" }],
    ["for a body with GET", { body: "text" }],
    ["for a stream without duplex", { method: "POST", body }],
    ["for a header's name", { headers }],
    ["for a mode that there is not", { mode: "none" as RequestMode }],
    ["for a signal that is none", { signal: 1 as unknown as AbortSignal }],
  ])("%s", async (_name, init) => {
    const { polite, seen } = scriptedSite({ default: { window: "1/h" } }, () => 200);
    await expect(polite.fetch("https://a.example/", init as RequestInit)).rejects.toThrow(TypeError);
    expect(seen).toHaveLength(0);
    expect(polite.check("a.example").proceed).toBe(true);
  });
});
