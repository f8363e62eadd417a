import { useState } from "preact/hooks";
import { applyTheme, nextTheme, readTheme, type Theme } from "../state/theme.js";

const WORDS: Readonly<Record<Theme, string>> = { auto: "Auto", light: "Light", dark: "Dark" };

/** Goes through auto, light and dark. */
export function ThemeButton() {
  const [theme, setTheme] = useState(readTheme);
  return (
    <button
      type="button"
      class="plain theme"
      aria-label={`Theme: ${WORDS[theme].toLowerCase()}`}
      onClick={() => {
        const next = nextTheme(theme);
        applyTheme(next);
        setTheme(next);
      }}
    >
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        <path
          d="M8 1.2a6.8 6.8 0 1 0 0 13.6A6.8 6.8 0 0 0 8 1.2Zm0 1.4v10.8A5.4 5.4 0 0 1 8 2.6Z"
          fill="currentColor"
          fill-rule="evenodd"
        />
      </svg>
      {WORDS[theme]}
    </button>
  );
}
