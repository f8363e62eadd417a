import type { CellWrite } from "../../../src/stores/cells.js";

/** Cells whose sum never changes, whatever is moved between them. */
export const accounts = ["a", "b", "c", "d", "e"].map((name) => `account:${name}`);

/** What each has at first. */
export const firstAmount = 100;

const ttlUs = 3_600_000_000;

/** The value of an account. Padding makes records of different lengths. */
export function accountValue(amount: number, padding: number): string {
  return `${amount}|${"·x".repeat(padding)}`;
}

/** What is in an account. */
export function amountOf(value: string | undefined): number {
  return Number(value?.split("|")[0]);
}

/** Moves one unit from the first of two accounts to the second. */
export function moveOne(values: readonly (string | undefined)[], padding: number): CellWrite[] {
  return [-1, 1].map((more, index) => ({
    index,
    value: accountValue(amountOf(values[index]) + more, padding),
    ttlUs,
  }));
}

/** Writes to all accounts what they have at first. */
export function openAccounts(): CellWrite[] {
  return accounts.map((_, index) => ({ index, value: accountValue(firstAmount, index), ttlUs }));
}

/** Sum over all accounts. */
export function total(values: readonly (string | undefined)[]): number {
  return values.reduce((sum, value) => sum + amountOf(value), 0);
}
