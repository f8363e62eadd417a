/** One line of a made-up robots.txt. */
export interface Line {
  readonly name: "User-agent" | "Allow" | "Disallow" | "Crawl-delay" | "Sitemap";
  readonly value: string;
}

/** What the slow model says about one agent. */
export interface SlowRules {
  readonly rules: readonly Line[];
  readonly crawlDelaySec: number | null;
}

/** Writes lines as a file. */
export function fileOf(lines: readonly Line[], lineEnd = "\n"): string {
  return lines.map(({ name, value }) => `${name}: ${value}${lineEnd}`).join("");
}

/** Whether a pattern of plain characters, `*` and a final `$` matches the whole of a path or its beginning, by trying everything. */
export function slowMatch(pattern: string, path: string): boolean {
  if (pattern === "") return true;
  if (pattern === "$") return path === "";
  if (pattern.startsWith("*")) {
    return slowMatch(pattern.slice(1), path) || (path !== "" && slowMatch(pattern, path.slice(1)));
  }
  return path !== "" && path[0] === pattern[0] && slowMatch(pattern.slice(1), path.slice(1));
}

/** Whether the rules let a path through, by asking all of them. */
export function slowDecision(rules: readonly Line[], path: string): boolean {
  let best = { length: 0, isAllow: true };
  for (const { name, value } of rules) {
    const { length } = value;
    if (value === "" || !slowMatch(value, path)) continue;
    const isAllow = name === "Allow";
    if (length > best.length || (length === best.length && isAllow)) best = { length, isAllow };
  }
  return best.isAllow;
}

/** The lines for one agent: those under each run of user-agent lines that names it, or else under each that names `*`. */
export function slowRules(lines: readonly Line[], agent: string): SlowRules {
  const isNamed = lines.some(({ name, value }) => name === "User-agent" && value === agent);
  const wanted = isNamed ? agent : "*";
  const rules: Line[] = [];
  const delays: number[] = [];
  lines.forEach((line, index) => {
    if (line.name === "Allow" || line.name === "Disallow") {
      if (agentsAbove(lines, index, ["Allow", "Disallow"]).includes(wanted)) rules.push(line);
    } else if (line.name === "Crawl-delay") {
      if (agentsAbove(lines, index, ["Allow", "Disallow", "Crawl-delay"]).includes(wanted))
        delays.push(Number(line.value));
    }
  });
  return { rules, crawlDelaySec: delays.length === 0 ? null : Math.max(...delays) };
}

/** The user-agent lines of the nearest run above a line: back over the group's own lines, then back until one of `ends`. */
function agentsAbove(lines: readonly Line[], index: number, ends: readonly string[]): string[] {
  let at = index - 1;
  while (at >= 0 && lines[at].name !== "User-agent") at--;
  const agents: string[] = [];
  while (at >= 0 && !ends.includes(lines[at].name)) {
    if (lines[at].name === "User-agent") agents.push(lines[at].value);
    at--;
  }
  return agents;
}
