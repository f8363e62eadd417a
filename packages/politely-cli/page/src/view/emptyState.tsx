import { useState } from "preact/hooks";
import { readToken } from "../state/service.js";

/** What to do while no host was asked for: a line to paste into a terminal. */
export function EmptyState() {
  const [isCopied, setCopied] = useState(false);
  const line = curlLine();
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(line);
      setCopied(true);
    } catch {
      // Without permission the line can still be selected.
    }
  };
  return (
    <section class="empty" aria-label="Nothing yet">
      <h2>No host yet</h2>
      <p>Hosts appear here as soon as a program asks for its turn. Try it in a terminal:</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long line scrolls, and keys must be able to do that */}
      <pre tabIndex={0}>
        <code>{line}</code>
      </pre>
      <button type="button" onClick={() => void copy()}>
        {isCopied ? "Copied" : "Copy"}
      </button>
      <p class="note">
        The answer comes when the limits of the host allow a start. Release the permit with POST /v1/release when the
        request is done.
      </p>
    </section>
  );
}

function curlLine(): string {
  const base = new URL(".", window.location.href).href;
  const token = readToken() === "" ? [] : [`  -H "authorization: Bearer $POLITELY_TOKEN"`];
  return [
    `curl ${base}v1/acquire`,
    `  -H "content-type: application/json"`,
    ...token,
    `  -d '{"domain":"example.com"}'`,
  ].join(" \\\n");
}
