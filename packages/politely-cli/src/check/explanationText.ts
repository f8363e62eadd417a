import type { HostExplanation } from "./explainHost.js";

/** Writes an explanation for people: the host, then one block for each thing that limits it. `file` names the policy file. */
export function explanationText(explanation: HostExplanation, file: string): string {
  const { host, key, rule, words, intents, global, scopes, instead, notes } = explanation;
  const { position, preset } = rule;
  const place = position === undefined ? "" : ` (${file}:${position.line}:${position.column})`;
  const blocks: [string, readonly string[]][] = [
    ["counted as", [key]],
    ["rule", [rule.words + place, ...(preset?.sources ?? [])]],
    ["limits", words],
    ...Object.entries(intents).map(([name, told]): [string, readonly string[]] => [`+ intent ${name}`, told.words]),
    ...(global === undefined ? [] : [["+ global", global.words] as [string, readonly string[]]]),
    ...Object.entries(scopes).map(([name, told]): [string, readonly string[]] => [`+ scope ${name}`, told.words]),
    ...(instead === undefined ? [] : [["instead of", [instead]] as [string, readonly string[]]]),
    ...notes.map((note): [string, readonly string[]] => ["note", [note]]),
  ];
  const width = Math.min(24, Math.max(...blocks.map(([title]) => title.length)));
  const lines = blocks.flatMap(([title, texts]) =>
    texts.map((text, index) => `  ${(index === 0 ? title : "").padEnd(width)}  ${text}`),
  );
  return `${[host, ...lines].join("\n")}\n`;
}
