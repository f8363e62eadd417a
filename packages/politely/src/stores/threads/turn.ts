import { type Memory, TICKETS_WORD, TURN_WORD } from "./memory.js";

const NOBODY = 0;

/**
 * Whose turn it is to change the cells. It only keeps threads from working for nothing: a change is safe without it.
 *
 * So it may be taken from a thread at any time, and a thread that ends while it has its turn does no harm.
 */
export class Turn {
  constructor(private readonly memory: Memory) {}

  /** Number of the turn that is on, 0 when it is nobody's. */
  current(): number {
    return Atomics.load(this.memory.words, TURN_WORD);
  }

  /** Takes the turn when it is still `expected`: 0 when nobody has it, another number to take it away. Its new number, or 0. */
  take(expected = NOBODY): number {
    if (this.current() !== expected) return NOBODY;
    const ticket = Atomics.add(this.memory.words, TICKETS_WORD, 1) + 1;
    // 0 means nobody, also after 2^32 turns.
    const mine = ticket | 0 || 1;
    return Atomics.compareExchange(this.memory.words, TURN_WORD, expected, mine) === expected ? mine : NOBODY;
  }

  /** Ends a turn, unless it was taken away. */
  end(ticket: number): void {
    Atomics.compareExchange(this.memory.words, TURN_WORD, ticket, NOBODY);
  }
}
