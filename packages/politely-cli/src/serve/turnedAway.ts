/** Where callers are turned away when too many are there already. `connections`: their connection was closed before they could ask. */
export const DOORS = ["acquire", "proxy", "events", "feed", "connections"] as const;

export type Door = (typeof DOORS)[number];

/** Counts those who were turned away, by the door. The limiter never heard of them. */
export class TurnedAway {
  readonly counts: Record<Door, number> = { acquire: 0, proxy: 0, events: 0, feed: 0, connections: 0 };

  count(door: Door): void {
    this.counts[door] += 1;
  }
}
