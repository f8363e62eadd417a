/** The formats of logs that can be read. */
export const logFormats = ["index", "jsonl", "har", "access"] as const;
export type LogFormat = (typeof logFormats)[number];
