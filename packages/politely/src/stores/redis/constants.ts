import { INCIDENT_MEMORY_US, PROBE_PATIENCE_US } from "../../shared/cooldown.js";
import { BEHIND_MOST_US, MEMO_US } from "../../shared/decide.js";
import { ALWAYS_US, NEVER_US } from "../../shared/keyState.js";
import { RUNS_US } from "../../shared/line.js";
import { FEW, POLL_MOST_US, STANDBY_US } from "../../shared/ready.js";
import { FIRST_HOLD_US } from "../../shared/settle.js";
import { ASK_AGAIN_US, MEMBER_US } from "../../shared/take.js";

/** Numbers of the core, to be put into the text of the scripts. Those that it keeps to itself are written out there and here; the differential test watches them. */
export const NEVER = NEVER_US;
export const ALWAYS = ALWAYS_US;
export const INCIDENT_MEMORY = INCIDENT_MEMORY_US;
export const PROBE_PATIENCE = PROBE_PATIENCE_US;
export const MEMBER_MEMORY = MEMBER_US;
export const ASK_AGAIN = ASK_AGAIN_US;
export const POLL_MOST = POLL_MOST_US;
export const STANDBY = STANDBY_US;
export const FEW_IN_LINE = FEW;
export const RUNS = RUNS_US;
export const FIRST_HOLD = FIRST_HOLD_US;
export const POLL_LEAST = 10_000;
/** For how long an answer is remembered, and how much longer than it must a key is kept. */
export const MINUTE = MEMO_US;
export const KEEP_MOST = 400 * 86_400_000_000;
export const BEHIND_MOST = BEHIND_MOST_US;
export const TRACKS_MOST = 16;
export const UNCLAIMED = 100_000;
export const MISSED = 1_000_000;
export const SENIOR = 1_000_000;
export const AGEING = 10_000_000;
export const AHEAD_MOST = 1_000_000;
export const MEMBERS_MOST = 1_000;
export const LINE_MOST = 4_000;
export const RECORDER_LEASE = 30_000_000;
export const LEASE_MEMORY = 3_600_000_000;
