/** How the page looks: as the system does, or always the same. */
export type Theme = "auto" | "light" | "dark";

const KEY = "politely-theme";
const NEXT: Readonly<Record<Theme, Theme>> = { auto: "light", light: "dark", dark: "auto" };

/** What was chosen last in this browser. */
export function readTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "auto";
}

/** Looks like this from now on. */
export function applyTheme(theme: Theme): void {
  if (theme === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem(KEY);
  } else {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(KEY, theme);
  }
}

/** The one that the button leads to. */
export function nextTheme(theme: Theme): Theme {
  return NEXT[theme];
}
