import type { Io } from "./io.js";

/** Colours for one stream. Each method returns its text, with codes around it where the stream shows colours. */
export interface Paint {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
}

/** No colours at all: for pipes, files and snapshots. */
export const plainPaint: Paint = {
  bold: same,
  dim: same,
  red: same,
  green: same,
  yellow: same,
};

/** The sixteen colours that every terminal has. An empty text gets no codes. */
export const colourPaint: Paint = {
  bold: between(1, 22),
  dim: between(2, 22),
  red: between(31, 39),
  green: between(32, 39),
  yellow: between(33, 39),
};

/**
 * The paint for what a command writes to `to`, stderr unless told otherwise.
 *
 * Colours need a terminal there; `NO_COLOR` with any text in it and `TERM=dumb` turn them off.
 */
export function paintFor(io: Pick<Io, "env" | "isTerminal" | "stdout">, to: "stderr" | "stdout" = "stderr"): Paint {
  const isShown = to === "stderr" ? io.isTerminal : isTerminalStream(io.stdout) && io.env.TERM !== "dumb";
  const isWanted = (io.env.NO_COLOR ?? "") === "";
  return isShown && isWanted ? colourPaint : plainPaint;
}

function isTerminalStream(stream: object): boolean {
  return "isTTY" in stream && stream.isTTY === true;
}

function same(text: string): string {
  return text;
}

function between(on: number, off: number): (text: string) => string {
  return (text) => (text === "" ? "" : `\u001b[${on}m${text}\u001b[${off}m`);
}
