import type { Engine } from "../engine.js";
import { keyName } from "../forecast.js";
import type { LaneSpec } from "../lane.js";

/** Keys that are warned of, at most. */
const WARNED_MOST = 10_000;

const MESSAGE =
  "another process has other limits for this key; the stricter apply until it has been gone for one permitTtl. Give all processes the same policy";

/** Warns, once for each key, that another process's limits apply there, too. */
export class StricterWarnings {
  readonly #warned = new Set<string>();

  constructor(readonly engine: Engine) {}

  /** Another policy was in force at the key number `index` of a lane. */
  warn(spec: LaneSpec, index: number): void {
    const key = keyName(spec, index);
    if (this.#warned.has(key) || this.#warned.size >= WARNED_MOST) return;
    this.#warned.add(key);
    this.engine.emit(() => ({ type: "warn", key, atMs: this.engine.nowUs() / 1000, message: MESSAGE }));
  }
}
