import type { KeyState } from "../../../src/shared/keyState.js";
import { logOf } from "../../../src/shared/windowLog.js";
import { keyOf } from "../../../src/testing/store/operations.js";

/** A key that remembers something of every kind, each number another one. */
export function stateOfEverything(): KeyState {
  const paced = keyOf({
    gapUs: 101,
    rateCount: 102,
    ratePerUs: 103,
    burst: 104,
    quota: 105,
    calendar: "day Europe/Paris",
  });
  const windowed = keyOf({ windows: [106, 107, 1, 108, 109, 110], concurrency: 111, fromAnswer: true });
  return {
    seenUs: 1_700_000_000_000_001,
    lastUs: 1_700_000_000_000_002,
    answeredUs: 1_700_000_000_000_003,
    units: 4,
    starts: 5,
    throttled: 6,
    token: 1_700_000_000_000_007,
    slowUs: 8,
    heldUs: 18,
    pausedUntilUs: 1_700_000_000_000_009,
    cooldown: {
      untilUs: 1_700_000_000_000_010,
      beganUs: 1_700_000_000_000_011,
      throttleStep: 12,
      errorStep: 13,
      throttleRaised: true,
      errorRaised: false,
      probe: "out",
      probeAtUs: 1_700_000_000_000_014,
      because: '429, "Retry-After" 30 s — 漢',
    },
    probe: "process:1#2#0",
    headroom: {
      gapUs: 15,
      holdUntilUs: 1_700_000_000_000_016,
      untilUs: 1_700_000_000_000_017,
      startedUs: 1_700_000_000_000_018,
      because: "remaining 1",
    },
    tracks: [
      {
        ruleId: paced.ruleId,
        rule: paced.rule,
        usedUs: 1_700_000_000_000_019,
        sinceUs: 1_700_000_000_000_020,
        owed: 21,
        owedUs: 1_700_000_000_000_022,
        logs: [],
        quotaIndex: 23,
        quotaUsed: 24,
        quotaSinceUs: 1_700_000_000_000_025,
        quotaUntilUs: 1_700_000_000_000_026,
      },
      {
        ruleId: windowed.ruleId,
        rule: windowed.rule,
        usedUs: 27,
        sinceUs: 28,
        owed: 0,
        owedUs: 0,
        logs: [logOf([1_700_000_000_000_029, 30, 1_700_000_000_000_031, 32]), logOf([])],
        quotaIndex: -1,
        quotaUsed: 0,
        quotaSinceUs: 33,
        quotaUntilUs: -1,
      },
    ],
    places: [
      { id: "process:1#2#0", expiresUs: 1_700_000_000_000_034, holdUntilUs: 1_700_000_000_000_035, units: 36 },
      { id: "process:2#3#1", expiresUs: 37, holdUntilUs: 38, units: 39 },
    ],
    line: [
      {
        name: "process/1",
        turnUs: 1_700_000_000_000_040,
        joinedUs: 1_700_000_000_000_041,
        cost: { rate: 1, window: 1, quota: 1 },
        stands: "inLine",
      },
      { name: "process/2", turnUs: 46, joinedUs: 47, cost: { rate: 48, window: 49, quota: 50 }, stands: "firm" },
      { name: "process/3", turnUs: 51, joinedUs: 52, cost: { rate: 1, window: 53, quota: 1 }, stands: "aside" },
    ],
    members: [{ name: "process", seenUs: 1_700_000_000_000_042 }],
    memos: [{ asker: "process:1", sequence: 43, atUs: 1_700_000_000_000_044, reply: '{"nowUs":45}' }],
  };
}
