const NAMES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Text as it may stand in SVG and HTML, between tags or in a quoted attribute. Control characters, which neither may hold, become blanks. */
export function escapeText(text: string): string {
  return text.replace(/\p{Cc}|[\ufffe\uffff]/gu, " ").replace(/[&<>"']/g, (character) => NAMES[character] ?? " ");
}

/** The colours of a picture or a page. */
export interface Palette {
  readonly paper: string;
  readonly ink: string;
  readonly faint: string;
  readonly line: string;
  readonly track: string;
  readonly bar: string;
  /** The host that is done last. */
  readonly last: string;
}

const LIGHT: Palette = {
  paper: "#ffffff",
  ink: "#1f2328",
  faint: "#57606a",
  line: "#d0d7de",
  track: "#eef1f4",
  bar: "#0b6bcb",
  last: "#b4450b",
};

const DARK: Palette = {
  paper: "#0d1117",
  ink: "#e6edf3",
  faint: "#9da7b3",
  line: "#3d444d",
  track: "#1c2229",
  bar: "#58a6ff",
  last: "#f0883e",
};

/** Rules with the colours of a light room, and again with those of a dark one for readers who prefer it. Colours are written out: not every viewer knows variables. */
export function inBothColours(rules: (palette: Palette) => string): string {
  return `${rules(LIGHT)}@media (prefers-color-scheme:dark){${rules(DARK)}}`;
}
