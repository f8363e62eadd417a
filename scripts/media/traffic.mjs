// Programs that call sites through a service, as a newsroom's collector would: some wait, one is told to stay away, one is paused.
import { setTimeout as delay } from "node:timers/promises";

/** The limits that the service is started with. */
export const policy = {
  default: { rate: "1/s", concurrency: 4 },
  hosts: {
    "api.catalogue.example": { rate: "3/s", concurrency: 8 },
    "export.papers.example": { minDelay: "3s", concurrency: 1 },
    "en.encyclopedia.example": { rate: "8/s", burst: 4, concurrency: 4 },
    "news.example": { rate: "30/min" },
    "images.example": { rate: "12/s", burst: 12 },
    "feeds.agency.example": { rate: "4/s", burst: 2 },
  },
};

/** How many callers each host has, and how long each of them pauses between two requests. */
const callers = [
  { host: "api.catalogue.example", count: 6, restMs: 0 },
  { host: "export.papers.example", count: 4, restMs: 0 },
  { host: "en.encyclopedia.example", count: 5, restMs: 300 },
  { host: "news.example", count: 3, restMs: 0 },
  { host: "images.example", count: 6, restMs: 500 },
  { host: "feeds.agency.example", count: 3, restMs: 0 },
  { host: "www.broadcaster.example", count: 2, restMs: 0 },
  { host: "data.statistics.example", count: 3, restMs: 0 },
  { host: "weather.example", count: 1, restMs: 1_500 },
  { host: "maps.example", count: 1, restMs: 2_500 },
  { host: "shop.example", count: 2, restMs: 0 },
  { host: "archive.ministry.example", count: 2, restMs: 0 },
  { host: "tickets.opera.example", count: 2, restMs: 0 },
  { host: "lists.example", count: 1, restMs: 30_000 },
  { host: "registry.example", count: 1, restMs: 40_000 },
];

/**
 * Keeps the hosts busy until `signal` aborts.
 *
 * @param {string} url of the service
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export async function makeTraffic(url, signal) {
  const post = poster(url, signal);
  const loops = callers.flatMap(({ host, count, restMs }) => Array.from({ length: count }, () => loop(host, restMs)));
  await Promise.all(loops);

  /** @param {number} ms */
  function rest(ms) {
    return delay(ms, undefined, { signal }).catch(() => undefined);
  }

  /** @param {string} host @param {number} restMs */
  async function loop(host, restMs) {
    const begin = performance.now();
    for (let calls = 0; !signal.aborted; calls++) {
      // Collectors come in waves.
      const wave = 1 + Math.sin((performance.now() - begin) / 9_000);
      const permit = (await post("/v1/acquire", { domain: `https://${host}/${calls}` }))?.permit;
      if (permit === undefined) return;
      await rest(30 + (calls % 7) * 40);
      await post("/v1/release", { permit, status: 200 });
      await rest(restMs * wave);
    }
  }
}

/**
 * Pauses one site, and lets two others ask for a break, some seconds apart.
 *
 * @param {string} url of the service
 * @param {AbortSignal} signal
 */
export async function makeTrouble(url, signal) {
  const post = poster(url, signal);
  await post("/v1/pause", { domain: "tickets.opera.example" });
  await post("/v1/record", { domain: "archive.ministry.example", status: 429, headers: { "retry-after": "120" } });
  await delay(11_000, undefined, { signal });
  await post("/v1/record", { domain: "shop.example", status: 429, headers: { "retry-after": "60" } });
}

/** @param {string} url @param {AbortSignal} signal */
function poster(url, signal) {
  return async (/** @type {string} */ path, /** @type {object} */ body) => {
    const headers = { "content-type": "application/json" };
    const request = fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    const response = await request.catch((/** @type {unknown} */ error) => {
      // The service is stopped after the signal, and waiting calls with it.
      if (signal.aborted) return undefined;
      throw error;
    });
    if (response === undefined || response.status === 204 || signal.aborted) return undefined;
    const answer = /** @type {{ permit?: string }} */ (await response.json());
    if (!response.ok) throw new Error(`${path} was answered with ${response.status}: ${JSON.stringify(answer)}`);
    return answer;
  };
}
