import type { OriginLimit } from "../../../src/testing/index.js";

/** Everything that came so far. Instants are whole microseconds. */
export interface History {
  /** Who was let in, in order. */
  readonly letInUs: readonly number[];
  /** Everybody. */
  readonly arrivalsUs: readonly number[];
}

/** Tells whether a limit lets in a request at `nowUs`, from everything that came before, by the words of its definition. Slow. */
export type Oracle = (history: History, nowUs: number) => boolean;

/** A rate as the oracles take it. */
export interface PlainRate {
  readonly count: number;
  /** Whole milliseconds. */
  readonly per: number;
}

/** In (now - P, now] there are fewer than N. */
export function slidingOracle({ count, per }: PlainRate): Oracle {
  return ({ letInUs }, nowUs) => letInUs.filter((atUs) => atUs > nowUs - per * 1_000).length < count;
}

/** In the window of the wall clock that now is in, there are fewer than N. */
export function fixedOracle({ count, per }: PlainRate, wallOffsetUs: bigint): Oracle {
  const windowOf = (us: number): bigint => (BigInt(us) + wallOffsetUs) / BigInt(per * 1_000);
  return ({ letInUs }, nowUs) => letInUs.filter((atUs) => windowOf(atUs) === windowOf(nowUs)).length < count;
}

/** From any earlier start until now there are at most burst + rate * time, this one included. */
export function tokenOracle({ count, per }: PlainRate, burst: number): Oracle {
  const perUs = BigInt(per * 1_000);
  return ({ letInUs }, nowUs) =>
    burst >= 1 &&
    letInUs.every((fromUs, index) => {
      const spent = BigInt(letInUs.length - index + 1);
      return spent * perUs <= BigInt(burst) * perUs + BigInt(nowUs - fromUs) * BigInt(count);
    });
}

/** What nginx does, from the first request on, in its own whole numbers. */
export function leakyOracle({ count, per }: PlainRate, burst: number): Oracle {
  return ({ letInUs }, nowUs) => excessAt({ count, per }, letInUs, nowUs) <= BigInt(burst) * 1_000n;
}

/** How long nginx would hold back who is let in now, in milliseconds. */
export function leakyHeldBackMs(rate: PlainRate, letInUs: readonly number[], nowUs: number): number {
  return Number((excessAt(rate, letInUs, nowUs) * 1_000n) / thousandths(rate));
}

/** More than N within P bans; each arrival during the ban adds to it. */
export function penaltyOracle(box: Extract<OriginLimit, { kind: "penalty-box" }>, { count, per }: PlainRate): Oracle {
  return ({ arrivalsUs }, nowUs) => {
    let untilUs = Number.NEGATIVE_INFINITY;
    let counted: number[] = [];
    for (const atUs of [...arrivalsUs, nowUs]) {
      if (atUs < untilUs) {
        untilUs += (box.lengthenMs ?? box.banMs) * 1_000;
        continue;
      }
      counted.push(atUs);
      if (counted.filter((each) => each > atUs - per * 1_000).length <= count) continue;
      counted = [];
      untilUs = atUs + box.banMs * 1_000;
    }
    return nowUs >= untilUs;
  };
}

function excessAt(rate: PlainRate, letInUs: readonly number[], nowUs: number): bigint {
  let excess = 0n;
  let lastMs: bigint | undefined;
  for (const us of [...letInUs, nowUs]) {
    const ms = BigInt(us) / 1_000n;
    const next: bigint = lastMs === undefined ? 0n : excess - (thousandths(rate) * (ms - lastMs)) / 1_000n + 1_000n;
    excess = next > 0n ? next : 0n;
    lastMs = ms;
  }
  return excess;
}

function thousandths({ count, per }: PlainRate): bigint {
  return (BigInt(count) * 1_000_000n) / BigInt(per);
}
