import { countText, durationText } from "../words.js";
import { escapeText, inBothColours } from "./markup.js";
import type { Plan } from "./plan.js";
import { bindingText, endText, longPoleText, noteTexts } from "./planSentences.js";
import { svgElement } from "./planSvg.js";

/** What a page says beside the plan. */
export interface PlanHtmlOptions {
  readonly wallMs: number;
  readonly duplicates: number;
  readonly peakInFlight: number;
}

const MOST_ROWS = 1_000;

/** Writes a plan as a page of its own: the picture, what holds it back, and a table of the 1,000 slowest hosts. It loads nothing and has no script. */
export function planHtml(plan: Plan, options: PlanHtmlOptions): string {
  const shown = plan.hosts.slice(0, MOST_ROWS);
  const more = plan.hosts.length - shown.length;
  const title = escapeText(endText(plan, options.wallMs));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${longPoleText(plan).map(paragraph).join("\n")}
<div class="wide">${svgElement(plan, options.wallMs)}</div>
<div class="wide"><table>
<thead><tr><th scope="col">Host</th><th scope="col">Requests</th><th scope="col">Done in</th><th scope="col">Waits for</th></tr></thead>
<tbody>
${shown.map((host) => `<tr><th scope="row">${escapeText(host.key)}</th><td>${countText(host.requests)}</td><td>${durationText(host.endsAtMs)}</td><td>${escapeText(bindingText(host))}</td></tr>`).join("\n")}
</tbody>
</table></div>
${more > 0 ? paragraph(`And ${countText(more)} more, done sooner.`) : ""}
${noteTexts(plan, options).map(paragraph).join("\n")}
</main>
</body>
</html>
`;
}

const PAGE_STYLE = `
:root{color-scheme:light dark}
body{margin:0;font:15px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem}
h1{font-size:1.3rem}
.wide{overflow-x:auto;margin:1rem 0}
svg{min-width:40rem;width:100%;height:auto}
table{border-collapse:collapse;width:100%}
th,td{padding:.3rem .6rem;text-align:left;font-weight:400;border-bottom:1px solid}
td:nth-child(2),td:nth-child(3){text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
${inBothColours(({ paper, ink, faint, line }) => `body{background:${paper};color:${ink}}thead th{color:${faint}}th,td{border-color:${line}}`)}
`;

function paragraph(text: string): string {
  return `<p>${escapeText(text)}</p>`;
}
