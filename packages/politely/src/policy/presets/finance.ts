import type { Preset } from "./preset.js";

/** Markets, disclosures and their news. */
export const finance: readonly Preset[] = [
  {
    id: "fred",
    hosts: ["api.stlouisfed.org"],
    limits: { window: "120/min" },
    userAgent: "no rule found",
    requiresContact: false,
    notes: "Per key. Too fast: 429, which in practice is over after 20 s.",
    sources: ["https://fred.stlouisfed.org/docs/api/api_key.html"],
    confidence: "high",
    date: "2026-11-15",
  },
  {
    id: "edinet",
    hosts: ["api.edinet-fsa.go.jp", "disclosure2.edinet-fsa.go.jp"],
    limits: { window: "1/3s", concurrency: 1 },
    countsTogether: true,
    userAgent: "no rule found",
    requiresContact: false,
    notes:
      "Nothing is published; a cautious choice. The operators watch the load and suspend keys by hand; 429, cut connections, at times a mail. Version 2 needs a key.",
    sources: ["https://time2log.com/2024/09/01/ja/edinet/ (practice report)"],
    confidence: "low",
    date: "2026-11-15",
  },
  {
    id: "tdnet",
    hosts: ["www.release.tdnet.info"],
    limits: { window: "1/5s", concurrency: 1 },
    userAgent: "no rule found",
    requiresContact: false,
    notes:
      "Nothing is published for the viewer pages; a cautious choice. The official interface is a paid service of JPX.",
    sources: ["https://api-gallery.com/?p=10328"],
    confidence: "low",
    date: "2026-11-15",
  },
  {
    id: "yahoo-finance",
    hosts: ["query1.finance.yahoo.com", "query2.finance.yahoo.com"],
    limits: { window: ["1/2s", "360/h"], concurrency: 1 },
    countsTogether: true,
    userAgent: "no rule found",
    requiresContact: false,
    notes:
      "No public interface, and the terms forbid much automated use. Users tell of 429 after some 950 quick calls, of bans for a day, and of about 360 an hour.",
    sources: [
      "https://github.com/ranaroussi/yfinance/issues/2128",
      "https://github.com/ranaroussi/yfinance/issues/312",
    ],
    confidence: "low",
    date: "2026-11-15",
  },
  {
    id: "reuters",
    hosts: ["www.reuters.com"],
    limits: { window: "1/10s", concurrency: 1 },
    userAgent: "no rule found",
    requiresContact: false,
    notes: "Licensed feeds only; robots.txt and the terms restrict programs. A cautious choice.",
    sources: [],
    confidence: "low",
    date: "2026-11-15",
  },
  {
    id: "binance",
    hosts: ["api.binance.com"],
    limits: { window: "6000/min" },
    userAgent: "no rule found",
    requiresContact: false,
    notes:
      "Counts weight: give a request's weight as its cost. 429, then 418 with a ban of two minutes to three days; both with Retry-After. 403 is the web firewall.",
    sources: ["https://developers.binance.com/docs/binance-spot-api-docs/rest-api/limits"],
    confidence: "high",
    date: "2026-11-15",
  },
];
