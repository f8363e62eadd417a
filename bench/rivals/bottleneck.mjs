// @ts-check
import Bottleneck from "bottleneck";

/** Each host has had its one start of this hour. @param {string[]} hosts */
export async function hold(hosts) {
  const group = new Bottleneck.Group({ minTime: 3_600_000 });
  await Promise.all(hosts.map((host) => group.key(host).schedule(() => Promise.resolve())));
  return group;
}

/**
 * @param {{ count: number; perMs: number; burst: number }} limit
 * @param {(startedAtMs: number) => void} onStart
 */
export function paced({ count, perMs, burst }, onStart) {
  const limiter = new Bottleneck({
    reservoir: burst,
    reservoirRefreshAmount: burst,
    reservoirRefreshInterval: (perMs * burst) / count,
  });
  return () => {
    limiter.schedule(async () => onStart(performance.now()));
  };
}
