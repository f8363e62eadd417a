/** @typedef {{ column: number; text: string; style: string }} Run text of one look; `style` is a list of class names */

const colours = new Map([
  [31, "red"],
  [32, "green"],
  [33, "yellow"],
  [34, "blue"],
  [36, "cyan"],
]);

/**
 * Takes lines with colour codes (SGR) apart. Codes go on from line to line, as a terminal writes them. Blank runs are left out.
 *
 * Each character must be one column wide, and one UTF-16 unit: letters, bars, no emoji.
 *
 * @param {readonly string[]} lines
 * @returns {Run[][]} the runs of each line
 */
export function parseLines(lines) {
  /** @type {Look} */
  let look = plain;
  return lines.map((line) => {
    /** @type {Run[]} */
    const runs = [];
    let column = 0;
    line.split("\u001b[").forEach((part, index) => {
      // All but the first part begin with codes.
      const [, codes = "", text = ""] = index === 0 ? ["", "", part] : (/^([\d;]*)m(.*)$/.exec(part) ?? []);
      if (index > 0) look = codes.split(";").map(Number).reduce(afterCode, look);
      runs.push(...split(text, column, styleOf(look)));
      column += text.length;
    });
    return runs;
  });
}

/** @typedef {{ isBold: boolean; isDim: boolean; colour: string | undefined }} Look */

const plain = { isBold: false, isDim: false, colour: undefined };

/**
 * @param {Look} look
 * @param {number} code
 * @returns {Look}
 */
function afterCode(look, code) {
  if (code === 0) return plain;
  if (code === 1) return { ...look, isBold: true };
  if (code === 2) return { ...look, isDim: true };
  if (code === 22) return { ...look, isBold: false, isDim: false };
  if (code === 39) return { ...look, colour: undefined };
  return colours.has(code) ? { ...look, colour: colours.get(code) } : look;
}

/** @param {Look} look */
function styleOf({ isBold, isDim, colour }) {
  return [isBold ? "bold" : undefined, isDim ? "dim" : undefined, colour]
    .filter((name) => name !== undefined)
    .join(" ");
}

/**
 * Parts of bars are runs of their own, for they are drawn and not written. Two blanks or more end a run, so that text begins where it should in any font.
 *
 * @param {string} text
 * @param {number} column
 * @param {string} style
 * @returns {Run[]}
 */
function split(text, column, style) {
  return [...text.matchAll(/█+|▒+|░+|[^\s█▒░]+(?: [^\s█▒░]+)*/gu)].map((match) => ({
    column: column + match.index,
    text: match[0],
    style,
  }));
}
