import { useEffect, useRef, useState } from "preact/hooks";

/** What the prompt knows and tells. */
export interface TokenPromptProps {
  /** The token given before was not the right one. */
  readonly isRefused: boolean;
  readonly onToken: (token: string) => void;
}

/** Asks for the token of a service that wants one. It stays in this tab, and is forgotten with it. */
export function TokenPrompt({ isRefused, onToken }: TokenPromptProps) {
  const field = useRef<HTMLInputElement>(null);
  const [token, setToken] = useState("");
  useEffect(() => field.current?.focus(), []);
  return (
    <main class="alone">
      <form
        aria-label="Token"
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim() !== "") onToken(token.trim());
        }}
      >
        <h1>Politely</h1>
        <p>
          This service asks for its token: what it was started with as --token or POLITELY_TOKEN. This tab remembers it
          until it is closed.
        </p>
        <label>
          <span>Token</span>
          <input
            ref={field}
            type="password"
            autocomplete="off"
            value={token}
            aria-invalid={isRefused}
            aria-describedby="token-problem"
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <p id="token-problem" class="problem" role="alert">
          {isRefused ? "That is not the token." : ""}
        </p>
        <button type="submit" class="strong">
          Continue
        </button>
      </form>
    </main>
  );
}
