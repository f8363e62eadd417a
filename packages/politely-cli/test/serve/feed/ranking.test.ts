import fc from "fast-check";
import { expect, it } from "vitest";
import { seeded } from "../../../../politely/test/laws/seeded.js";
import type { HostFeed } from "../../../src/serve/feed/hostFeed.js";
import { ranking } from "../../../src/serve/feed/ranking.js";
import type { HostRow } from "../../../src/serve/feed/row.js";

const STATES = ["cooling", "paused", "waiting", "flowing", "idle"] as const;

const anyRows = fc.uniqueArray(
  fc.record({
    domain: fc.string({ minLength: 1, maxLength: 3 }),
    state: fc.constantFrom(...STATES),
    waiting: fc.nat({ max: 2 }),
    perSecond: fc.constantFrom(0, 0.5, 2),
    lastAt: fc.constantFrom(null, 5, 6),
  }),
  { selector: ({ domain }) => domain, maxLength: 60 },
);

/** A feed of these rows, as far as a ranking looks at one. */
function feedOf(rows: readonly Partial<HostRow>[]): HostFeed {
  return { moment: () => ({}), records: () => rows.map((row) => ({ row: () => row })) } as unknown as HostFeed;
}

it("gives the first of all that fit as if all were sorted, and how many there are", async () => {
  await fc.assert(
    fc.asyncProperty(anyRows, fc.integer({ min: 1, max: 20 }), fc.boolean(), async (rows, limit, isAll) => {
      const fits = ({ waiting }: { readonly waiting: number }): boolean => isAll || waiting > 0;
      const fitting = rows.filter(fits);
      const { matched, rows: found } = await ranking(feedOf(rows), { limit, fits });
      expect(matched).toBe(fitting.length);
      // As numbers that say the same, from the least important to the most.
      const rank = (row: (typeof rows)[number]): (number | string)[] => [
        STATES.indexOf(row.state),
        -row.waiting,
        -row.perSecond,
        -(row.lastAt ?? 0),
        row.domain,
      ];
      const inOrder = [...fitting].sort((a, b) => {
        const [left, right] = [rank(a), rank(b)];
        const at = left.findIndex((value, index) => value !== right[index]);
        return at < 0 ? 0 : left[at] < right[at] ? -1 : 1;
      });
      expect(found).toEqual(inOrder.slice(0, limit));
    }),
    seeded(300),
  );
});
