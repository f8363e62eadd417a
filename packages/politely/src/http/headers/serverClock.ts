import { trimField } from "./fieldValue.js";
import { parseHttpDate } from "./httpDate.js";

/** The clock that instants in an answer are measured by: its `Date` when that is there and valid, else our own. */
export class ServerClock {
  private measuredMs: number | undefined;

  /** `date` is the text of the field, if any; `wallMs` is our own time, in milliseconds since 1970. */
  constructor(
    private readonly date: string | undefined,
    private readonly wallMs: number,
  ) {}

  /** Milliseconds since 1970. Not finite only when there is no `Date` and our own time is not. */
  nowMs(): number {
    // Most answers hold no instant, so the date is read when somebody asks.
    this.measuredMs ??= parseHttpDate(trimField(this.date), this.wallMs) ?? this.wallMs;
    return this.measuredMs;
  }
}
