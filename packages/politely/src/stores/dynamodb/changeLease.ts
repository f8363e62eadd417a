import { decideLease } from "../../shared/lease.js";
import type { LeaseOperation, LeaseReply } from "../../shared/operation.js";
import type { DynamodbCells } from "../dynamodb.js";

/** What is asked of a lease. */
export interface LeaseErrand {
  /** The key of its cell. */
  readonly name: string;
  readonly operation: LeaseOperation;
  /** What its holder gives up by, before the end. */
  readonly clockErrorUs: number;
}

/**
 * Carries out one operation on a lease, which lasts longer by as much as the time is known less well than `clockErrorUs`.
 *
 * So the holder gives it up before DynamoDB's own clock reaches its end, and nobody whose time is behind that clock can have it sooner.
 */
export function changeLease(cells: DynamodbCells, { name, operation, clockErrorUs }: LeaseErrand): Promise<LeaseReply> {
  return cells.change([name], ([value], nowUs, errorUs) => {
    const error = { errorUs, statedUs: clockErrorUs };
    const { reply, text, keepForUs: ttlUs } = decideLease(value, operation, nowUs, name, error);
    return { writes: text === undefined ? [] : [{ index: 0, value: text, ttlUs }], answer: reply };
  });
}
