import type { LimitOperation, Start, Stop, TakeReply } from "./operation.js";

// What a store remembers of a reply is short: a busy key remembers many. The starts of a take follow from the first, the instants
// of the others, and what the operation took.

/** A reply as it is remembered. */
export function memoText(reply: object): string {
  return "starts" in reply ? JSON.stringify(takeList(reply as TakeReply)) : JSON.stringify(reply);
}

/** The reply to an operation that was sent again. */
export function readMemo(text: string, operation: LimitOperation): object {
  const value = JSON.parse(text) as object | TakeList;
  if (!Array.isArray(value)) return value;
  const [nowUs, first, laterUs, stop, isCooling, stricterAt, fleet] = value as unknown as TakeList;
  const taken = operation.kind === "take" ? operation.keys.map(({ cost }) => cost.rate) : [];
  const reply: TakeReply = {
    nowUs,
    starts: startsOf(first, laterUs, taken),
    stop: stop === 0 ? undefined : stopOf(stop),
    isCooling: isCooling === 1,
    stricterAt,
    fleet,
    isStalePeriod: false,
  };
  return reply;
}

type FirstStart = readonly [number, number, readonly number[], readonly number[]];
type StopList = readonly [number, Stop["kind"], number, number, string];
type TakeList = readonly [number, FirstStart, readonly number[], StopList | 0, 0 | 1, number, number];

function takeList({ nowUs, starts, stop, isCooling, stricterAt, fleet }: TakeReply): TakeList {
  const [{ startedUs, token, unitsAfter, previousUs }] = starts;
  const laterUs = starts.slice(1).map((start, index) => start.startedUs - starts[index].startedUs);
  const stopList: StopList | 0 =
    stop === undefined ? 0 : [stop.key, stop.kind, stop.readyUs, stop.turnUs, stop.because];
  const first: FirstStart = [startedUs, token, unitsAfter, previousUs];
  return [nowUs, first, laterUs, stopList, isCooling ? 1 : 0, stricterAt, fleet];
}

function stopOf([key, kind, readyUs, turnUs, because]: StopList): Stop {
  return { key, kind, readyUs, turnUs, because };
}

function startsOf(
  [startedUs, token, unitsAfter, previousUs]: FirstStart,
  laterUs: readonly number[],
  taken: readonly number[],
): Start[] {
  const starts: Start[] = [{ startedUs, token, unitsAfter, previousUs }];
  for (const afterUs of laterUs) {
    const before = starts[starts.length - 1];
    starts.push({
      startedUs: before.startedUs + afterUs,
      token: before.token + 1,
      unitsAfter: before.unitsAfter.map((units, index) => units + taken[index]),
      previousUs: before.previousUs.map((atUs) => Math.max(atUs, before.startedUs)),
    });
  }
  return starts;
}
