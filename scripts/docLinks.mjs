import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/**
 * Finds links of a Markdown file that lead nowhere: to a file that is not there, or to a heading that the file does not have.
 *
 * Addresses with a scheme are not looked at. Links in code are not links.
 *
 * @param {string} root
 * @param {string} document its path from `root`
 * @returns {string[]} what is wrong, one line each
 */
export function brokenLinks(root, document) {
  const text = withoutCode(readFileSync(join(root, document), "utf8")).replaceAll(/`[^`\n]*`/g, "");
  const targets = [...text.matchAll(/\]\(([^)\s]+)[^)]*\)/g)].map((match) => match[1] ?? "");
  return targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .flatMap((target) => {
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? document : normalize(join(dirname(document), path));
      if (!existsSync(join(root, file))) return [`${document}: there is no ${target}`];
      if (anchor === undefined || !file.endsWith(".md") || anchorsOf(root, file).has(anchor)) return [];
      return [`${document}: ${file} has no heading #${anchor}`];
    });
}

/**
 * The names of a file's headings as GitHub makes them: lower case, without punctuation, `-` for blanks, `-1` behind the second of a name.
 *
 * @param {string} root
 * @param {string} file
 * @returns {Set<string>}
 */
function anchorsOf(root, file) {
  const text = withoutCode(readFileSync(join(root, file), "utf8"));
  /** @type {Map<string, number>} */
  const seen = new Map();
  const names = [...text.matchAll(/^#{1,6} +(.+?) *#*$/gm)].map((match) => {
    const words = (match[1] ?? "").replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1");
    const name = words
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
      .replaceAll(" ", "-");
    const times = seen.get(name) ?? 0;
    seen.set(name, times + 1);
    return times === 0 ? name : `${name}-${times}`;
  });
  const written = [...text.matchAll(/<a (?:id|name)="([^"]+)"/g)].map((match) => match[1] ?? "");
  return new Set([...names, ...written]);
}

/** @param {string} text */
function withoutCode(text) {
  return text.replaceAll(/^```[\s\S]*?^```$/gm, "");
}
