import type { InFlight } from "./inFlight.js";
import { Concurrency } from "./limits/concurrency.js";
import type { LimitState, Quota } from "./limits/limitState.js";
import { PenaltyBox } from "./limits/penaltyBox.js";
import type { LimitRule } from "./rules.js";

/** A limit's quota under the limit's name. */
export interface NamedQuota extends Quota {
  readonly name: string;
}

/** What the limits of a host say to one arrival. */
export interface Verdict {
  /** The first limit that refuses; undefined: let in. */
  readonly refusedBy: LimitRule | undefined;
  /** How long until the same request would be let in, if nobody else came. 0: let in. Infinity: nobody can know. */
  readonly waitUs: number;
  /** How long the site holds it back before working on it. */
  readonly heldBackUs: number;
  readonly wasBanned: boolean;
  /** What is left after this request. */
  readonly quotas: readonly NamedQuota[];
  /** The counts of concurrency that it is part of. */
  readonly counts: readonly InFlight[];
  /** It came before the time was over that an earlier refusal had told. */
  readonly isBeforeRetryAfter: boolean;
  /** Remembers that the refusal tells its client to stay away until then. */
  readonly tell: (untilUs: number) => void;
}

/** One client of one limit. */
interface Client {
  readonly rule: LimitRule;
  readonly state: LimitState;
  /** How many requests it has sent, this one included, up to one more than go unseen. */
  seen: number;
  /** Until when refusals of this limit told it to stay away. */
  toldUntilUs: number;
}

/** The limits of one host, each with the state of each of its clients. */
export class ClientLimits {
  readonly #limits: readonly { readonly rule: LimitRule; readonly clients: Map<string, Client> }[];
  readonly #wallOffsetUs: number;
  readonly #maxClients: number;

  constructor(rules: readonly LimitRule[], bounds: { readonly wallOffsetUs: number; readonly maxClients: number }) {
    this.#limits = rules.map((rule) => ({ rule, clients: new Map() }));
    this.#wallOffsetUs = bounds.wallOffsetUs;
    this.#maxClients = bounds.maxClients;
  }

  /**
   * Decides one arrival, and counts it: in every limit when it is let in, else in penalty boxes only.
   *
   * Throws `RangeError` when a limit would have to tell too many clients apart.
   */
  arrive(headers: Readonly<Record<string, string>>, nowUs: number): Verdict {
    const clients = this.#limits.map((limit) => this.#clientOf(limit.rule, limit.clients, { headers, nowUs }));
    const bound = clients.filter(({ rule, seen }) => seen > rule.afterCount);
    const waitsUs = new Map<Client, number>();
    for (const client of bound) {
      if (!(client.state instanceof PenaltyBox)) waitsUs.set(client, client.state.waitUs(nowUs));
    }
    const isRefused = [...waitsUs.values()].some((waitUs) => waitUs > 0);

    // Boxes come last, since they may count what the others refuse.
    let wasBanned = false;
    for (const client of bound) {
      if (!(client.state instanceof PenaltyBox)) continue;
      const meeting = client.state.arrive(nowUs, isRefused);
      waitsUs.set(client, meeting.waitUs);
      wasBanned ||= meeting.wasBanned;
    }

    const refusing = bound.filter((client) => (waitsUs.get(client) ?? 0) > 0);
    const taking = refusing.length === 0 ? bound : [];
    const heldBackUs = taking.reduce((longest, { state }) => Math.max(longest, state.take(nowUs)), 0);
    return {
      refusedBy: refusing.at(0)?.rule,
      waitUs: longestKnown(refusing.map((client) => waitsUs.get(client) ?? 0)),
      heldBackUs,
      wasBanned,
      quotas: clients.flatMap(({ rule, state }) => named(rule.name, state.quota(nowUs))),
      counts: taking.flatMap(({ state }) => (state instanceof Concurrency ? [state.inFlight] : [])),
      isBeforeRetryAfter: clients.some(({ toldUntilUs }) => nowUs < toldUntilUs),
      tell: (untilUs) => {
        for (const client of refusing) client.toldUntilUs = Math.max(client.toldUntilUs, untilUs);
      },
    };
  }

  #clientOf(
    rule: LimitRule,
    clients: Map<string, Client>,
    call: { readonly headers: Readonly<Record<string, string>>; readonly nowUs: number },
  ): Client {
    const id = rule.header === undefined ? "" : (call.headers[rule.header] ?? "");
    let client = clients.get(id);
    if (client === undefined) {
      if (clients.size >= this.#maxClients) this.#makeRoom(rule, clients, call.nowUs);
      client = { rule, state: rule.make(this.#wallOffsetUs), seen: 0, toldUntilUs: Number.NEGATIVE_INFINITY };
      clients.set(id, client);
    }
    // No need to count beyond what is asked, however long the test runs.
    client.seen = Math.min(client.seen + 1, rule.afterCount + 1);
    return client;
  }

  #makeRoom(rule: LimitRule, clients: Map<string, Client>, nowUs: number): void {
    for (const [id, { state, toldUntilUs }] of clients) {
      // Who has used up its unseen requests must not get them again.
      if (rule.afterCount === 0 && nowUs >= toldUntilUs && state.isFresh(nowUs)) clients.delete(id);
    }
    if (clients.size < this.#maxClients) return;
    throw new RangeError(
      `The limit "${rule.name}" already tells ${clients.size} clients apart. Send fewer values of its header, or raise maxClients.`,
    );
  }
}

/** The longest of the waits that somebody knows; Infinity when nobody knows any; 0 when there is none. */
function longestKnown(waitsUs: readonly number[]): number {
  const known = waitsUs.filter((waitUs) => waitUs < Number.POSITIVE_INFINITY);
  if (known.length === 0 && waitsUs.length > 0) return Number.POSITIVE_INFINITY;
  return Math.max(0, ...known);
}

function named(name: string, quota: Quota | undefined): readonly NamedQuota[] {
  return quota === undefined ? [] : [{ ...quota, name }];
}
