/** One metric in the words of each system. */
export interface Metric {
  /** Base units; `_total` at the end of what only grows. */
  readonly prometheus: string;
  readonly opentelemetry: string;
  readonly unit: string;
  /** What it counts, in a sentence. */
  readonly help: string;
}

/** Counters with a label for the host. */
export const COUNTERS = {
  starts: metric("starts_total", "starts", "{start}", "Starts granted or recorded, those given back unused too."),
  unused: metric("unused_total", "unused", "{start}", "Starts given back unused."),
  refused: metric("refused_total", "refused", "{request}", "Requests refused at once, by the code of the error."),
  cancelled: metric("cancelled_total", "cancelled", "{request}", "Waits ended by the caller."),
  expired: metric("expired_total", "expired", "{request}", "Waits that reached their deadline."),
  throttled: metric("throttled_total", "throttled", "{answer}", 'Answers that said "too many requests".'),
  cooldowns: metric("cooldowns_total", "cooldowns", "{cooldown}", "Cooldowns begun or lengthened."),
  lapsed: metric("lapsed_permits_total", "lapsed_permits", "{permit}", "Permits that nobody released in time."),
} as const;

/** Histograms with a label for the host. */
export const HISTOGRAMS = {
  wait: metric("wait_seconds", "wait.duration", "s", "Time from asking to the start; recorded starts have none."),
  interval: metric(
    "start_interval_seconds",
    "start.interval",
    "s",
    "Time between two starts of a host in this process.",
  ),
  inFlight: metric(
    "start_concurrency",
    "start.concurrency",
    "{request}",
    "Requests of the host in flight at a start, itself included.",
  ),
} as const;

/** Gauges with a label for the host. */
export const GAUGES = {
  inFlight: metric("in_flight", "in_flight", "{request}", "Permits not yet released."),
  waiting: metric("waiting", "waiting", "{request}", "Requests waiting for their turn."),
  cooldown: metric("cooldown_seconds", "cooldown.remaining", "s", "How long the host is still to be left alone."),
  tokens: metric("tokens_available", "tokens.available", "{token}", "Units in the bucket of a host that has a rate."),
} as const;

/** What concerns the whole process. */
export const WHOLE = {
  hosts: metric("hosts", "hosts", "{host}", "Hosts whose statistics are kept."),
  outages: metric("store_outages_total", "store.outages", "{outage}", "How often the store went away."),
  storeAway: metric("store_away", "store.away", "1", "1 while the store is away, else 0."),
  leases: metric("leases_total", "leases", "{lease}", "Leases asked for, by how that ended, and leases lost."),
  leasesHeld: metric("leases_held", "leases.held", "{lease}", "Leases held now by this process."),
} as const;

function metric(prometheus: string, opentelemetry: string, unit: string, help: string): Metric {
  return { prometheus: `politely_${prometheus}`, opentelemetry: `politely.${opentelemetry}`, unit, help };
}
