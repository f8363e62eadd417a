import { plainPaint } from "../../src/paint.js";
import { type Look, unicodeGlyphs } from "../../src/view/look.js";

/** Without colours, so that what is compared can be read. */
export function plainLook(columns: number): Look {
  return { columns, paint: plainPaint, glyphs: unicodeGlyphs };
}
