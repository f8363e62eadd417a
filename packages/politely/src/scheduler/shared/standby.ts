import { WallCalendar } from "../../core/calendar.js";
import type {
  LookReply,
  RecordOperation,
  Sender,
  SettleOperation,
  SettleReply,
  SharedRule,
  StopKind,
  TakeKey,
  TakeOperation,
  TakeReply,
  Units,
} from "../../shared/operation.js";
import { times } from "../../shared/record.js";
import { partOf, ruleIdOf } from "../../shared/ruleNumbers.js";
import type { Store } from "../../stores/store.js";
import { ONE } from "../cost.js";
import { costAt, type LaneCost } from "../lane.js";
import { FleetSize } from "./fleetSize.js";
import type { Link, MakeOperation } from "./link.js";
import type { MissedStarts } from "./linkBacklog.js";
import type { Plan } from "./plan.js";
import { Recollection } from "./recollection.js";
import { MissedLanes } from "./standbyMissed.js";
import type { StartGroup } from "./startLog.js";

/** How many processes are assumed when nobody has ever said. */
const UNKNOWN_FLEET = 10;
/** Keys whose heaviest request is remembered, at most. */
const HEAVIEST_MOST = 10_000;
/** Between two looks at places that are all taken. */
const PLACES_POLL_US = 20_000;
/** Between two looks for room to remember one more lane. */
const ROOM_POLL_US = 1_000_000;

/** Whose starts are noted, and how they are told to the store. */
export interface StartNote {
  readonly plan: Plan;
  readonly cost: LaneCost;
  /** The keys as the store takes them, as of when it is called. */
  readonly keysNow: () => TakeKey[];
}

/**
 * Stands in for a store that is away: grants this process's share of each limit, or everything.
 *
 * It keeps what it granted, and tells the store when that is back, so that coming back makes no burst. What it cannot keep it does not grant.
 */
export class Standby implements MissedStarts {
  readonly #fleet = new FleetSize();
  /** The most that one request has cost at a key, where that was more than one. */
  readonly #heaviest = new Map<string, Units>();
  /** The starts at the keys of a plan that the store does not know of. */
  readonly #missed = new MissedLanes<StartNote>();
  readonly #calendar = new WallCalendar(Date.now);
  /** What the store said before it went. */
  readonly recollection: Recollection;
  /** How many permits of this process hold a place at a key, whoever granted them. */
  readonly #held = new Map<string, number>();

  constructor(
    /** The state of the shares, on this process's clock. */
    readonly store: Store,
    readonly link: Link,
    readonly nowUs: () => number,
    /** What holds while the store is away. Only for shares it has to be remembered what was started before. */
    readonly outage: "share" | "closed" | "open" = "share",
  ) {
    const onForgotten = (message: string): void => link.parts.onLost("*", message);
    this.recollection = new Recollection({ hasStarts: outage === "share", onForgotten });
    link.backlog.starts = this;
  }

  /** Hears how many processes share a key. */
  learn(fleet: number): void {
    this.#fleet.hear(fleet, this.nowUs());
  }

  /** How many permits of this process hold a place at a key. */
  heldAt(storeKey: string): number {
    return this.#held.get(storeKey) ?? 0;
  }

  /** A permit takes a place at these keys, or gives it back. */
  count({ storeKeys, isFollowed }: Plan, change: 1 | -1): void {
    if (!isFollowed) return;
    for (const key of storeKeys) {
      const held = (this.#held.get(key) ?? 0) + change;
      if (held > 0) this.#held.set(key, held);
      else this.#held.delete(key);
    }
  }

  /** What this process does about a store that is away, in a sentence without a full stop. */
  get says(): string {
    const { outage } = this;
    const { most } = this.#fleet;
    if (outage === "closed") return "every request is refused with a StoreError until it is back";
    if (outage === "open")
      return "every request passes until it is back, but to a host that this process heard say stop";
    if (most === 0)
      return "this process keeps a tenth of each limit until it is back, since it never heard how many share them";
    if (most === 1) return "this process keeps the whole of each limit until it is back, since it saw no other";
    return `this process keeps a part of each limit until it is back, by the ${most} processes last seen`;
  }

  /** How the shares stand, for those who ask why; and which limits these are. */
  async look(plan: Plan, whole: readonly TakeKey[]): Promise<LookReply & { readonly rules: readonly SharedRule[] }> {
    const keys = this.#partsOf(plan, whole);
    await this.#recall(plan, keys);
    const reply = await this.store.transact(plan.storeKeys, { kind: "look", keys });
    const { stop } = this.#stopOf(plan, keys) ?? {};
    const seen = reply.keys.map((key, index) => {
      if (stop?.key !== index || key.stops.some(({ kind }) => kind === stop.kind)) return key;
      const { kind, readyUs, because } = stop;
      return { ...key, stops: [{ kind, readyUs, because }, ...key.stops] };
    });
    return { nowUs: reply.nowUs, keys: seen, rules: keys.map(({ rule }) => rule) };
  }

  #partsOf(plan: Plan, keys: readonly TakeKey[]): TakeKey[] {
    // Some may share only other keys: rather too small a part than too large a one.
    const { most } = this.#fleet;
    const parts = most === 0 ? UNKNOWN_FLEET : most;
    return keys.map((key, index) => {
      const rule = partOf(key.rule, parts, this.#heaviestAt(plan.storeKeys[index], key.cost));
      return { ...key, rule, ruleId: ruleIdOf(rule), slowUs: key.slowUs * parts };
    });
  }

  /** The most that one request has cost at a key, this one included: a part is the same for all, since the strictest of several would stop the heaviest for ever. */
  #heaviestAt(storeKey: string, cost: Units): Units {
    const known = this.#heaviest.get(storeKey) ?? ONE;
    const { rate, window, quota } = cost;
    if (rate <= known.rate && window <= known.window && quota <= known.quota) return known;
    const heaviest = {
      rate: Math.max(rate, known.rate),
      window: Math.max(window, known.window),
      quota: Math.max(quota, known.quota),
    };
    if (this.#heaviest.size >= HEAVIEST_MOST) this.#heaviest.clear();
    this.#heaviest.set(storeKey, heaviest);
    return heaviest;
  }

  /** Grants what this process's share of the limits allows, after all it has started and heard before. */
  async share(note: StartNote, operation: TakeOperation): Promise<TakeReply> {
    const { plan } = note;
    const keys = this.#partsOf(plan, operation.keys);
    await this.#recall(plan, keys);
    const stop = this.#fullAt(plan, this.nowUs()) ?? this.#stopOf(plan, keys);
    if (stop !== undefined) return stop;
    // What was said about turns is of the other timeline.
    const own = { ...operation, keys, turnUs: 0, joinedUs: 0, ticket: "", horizonUs: 0, member: "" };
    const reply = await this.store.transact(plan.storeKeys, own);
    for (const { startedUs } of reply.starts) this.#note(note, startedUs, 1);
    return reply;
  }

  /** In how many lanes there are starts that the store does not know of. */
  get size(): number {
    return this.#missed.size;
  }

  /** Hands over the starts of one of these lanes. */
  take(): { readonly keys: readonly string[]; readonly make: MakeOperation<RecordOperation> } | undefined {
    const lane = this.#missed.take();
    if (lane === undefined) return undefined;
    const { plan, keysNow } = lane.note;
    const groups = lane.log.groups;
    const make = (sender: Sender): RecordOperation => {
      const known = keysNow();
      // The policy may have changed, and with it which keys there are.
      const keys = known.length === plan.keys.length ? known : keysOnce(plan);
      const since = plan.storeKeys.map((_, index) => {
        return { rateUs: ALWAYS_US, quotaUs: this.#periodFromUs(plan, index, keys[index]) };
      });
      return { kind: "record", ...sender, keys, ...toldOf(groups, this.nowUs(), since) };
    };
    return { keys: plan.storeKeys, make };
  }

  /** Counts here a start that was made without asking; `isMissed`: the store has to be told when it is back. */
  async record(note: StartNote, whole: readonly TakeKey[], start: MissedStart): Promise<void> {
    const { plan, cost } = note;
    const { startedUs, isMissed } = start;
    if (isMissed) this.#note(note, startedUs, 1);
    if (this.outage !== "share") return;
    // Behind what was started before.
    this.recollection.started(plan, cost, { startedUs, count: 1 });
    await this.#recall(plan, this.#partsOf(plan, whole));
  }

  /** Counts here what this process has started with the store, key by key, whichever lane it was. */
  async #recall(plan: Plan, keys: readonly TakeKey[]): Promise<void> {
    for (const [index, key] of keys.entries()) {
      const storeKey = plan.storeKeys[index];
      const groups = this.recollection.takeStarts(storeKey);
      if (groups.length === 0) continue;
      const { rateCount, ratePerUs, burst } = key.rule;
      // A bucket is full again after this. What was started before, maybe beyond this process's share, is paid for.
      const paidUs = rateCount === 0 ? 0 : (burst * ratePerUs) / rateCount;
      const since = { rateUs: this.nowUs() - paidUs, quotaUs: this.#periodFromUs(plan, index, key) };
      const told = { kind: "record", asker: "", sequence: 0, keys: [key] } as const;
      await this.store.transact([storeKey], { ...told, ...toldOf(groups, this.nowUs(), [since]) });
    }
  }

  /** When the running period of a key's quota began, on this process's clock. */
  #periodFromUs({ keys }: Plan, index: number, { period }: TakeKey): number {
    const { quota } = keys[index].rule;
    if (quota === undefined) return ALWAYS_US;
    if (period !== undefined && period.fromUs > 0) return period.fromUs - (this.link.offsetUs ?? 0);
    const wallMs = this.link.parts.clock.wall();
    const { startsAtMs } = this.#calendar.periodAt(quota, wallMs);
    // A wall clock that was set back says nothing about when it began.
    return startsAtMs > wallMs ? ALWAYS_US : this.nowUs() - (wallMs - startsAtMs) * 1000;
  }

  /** What this process knows beyond the limits: a hold that the store spoke of, and places that are still taken. */
  #stopOf(plan: Plan, keys: readonly TakeKey[]): TakeReply | undefined {
    const nowUs = this.nowUs();
    const held = this.recollection.holdOf(plan, nowUs);
    if (held !== undefined) {
      const { kind, untilUs, because } = held.hold;
      return stopped(nowUs, held.index, kind, untilUs, because);
    }
    const unsure = this.recollection.unsureOf(plan, nowUs);
    if (unsure !== undefined) return stopped(nowUs, unsure.index, "queue", unsure.untilUs, "");
    const full = keys.findIndex(
      ({ rule }, index) => rule.concurrency > 0 && (this.#held.get(plan.storeKeys[index]) ?? 0) >= rule.concurrency,
    );
    if (full < 0) return undefined;
    return stopped(nowUs, full, "concurrency", nowUs + PLACES_POLL_US, String(keys[full].rule.concurrency));
  }

  /** Grants everything, but to a host that was heard to say stop. */
  open(note: StartNote, operation: TakeOperation): TakeReply {
    const nowUs = this.nowUs();
    const { plan } = note;
    const held = this.recollection.holdOf(plan, nowUs);
    if (held !== undefined && held.hold.kind === "cooldown") {
      return stopped(nowUs, held.index, held.hold.kind, held.hold.untilUs, held.hold.because);
    }
    const full = this.#fullAt(plan, nowUs);
    if (full !== undefined) return full;
    const none = plan.keys.map(() => 0);
    const start = { startedUs: nowUs, token: 0, unitsAfter: none, previousUs: none };
    const starts = Array.from({ length: operation.count }, () => start);
    this.#note(note, nowUs, operation.count);
    return { nowUs, starts, stop: undefined, isCooling: false, stricterAt: -1, fleet: 0, isStalePeriod: false };
  }

  /** Takes back a start of the shares. */
  async settle(plan: Plan, operation: SettleOperation): Promise<void> {
    await this.store.transact(plan.storeKeys, operation);
  }

  /** Hears an answer while the store is away. */
  async hear(plan: Plan, { because }: { readonly because: string }, operation: SettleOperation): Promise<SettleReply> {
    const reply = await this.store.transact(plan.storeKeys, operation);
    const nowUs = this.nowUs();
    reply.cooldownUs.forEach((holdUs, index) => {
      const hold = { untilUs: nowUs + holdUs, kind: "cooldown", because, saidUs: Number.NEGATIVE_INFINITY } as const;
      if (holdUs > 0) this.recollection.hold(plan.storeKeys[index], hold);
    });
    return reply;
  }

  #note(note: StartNote, startedUs: number, count: number): void {
    const { plan, cost } = note;
    const units = cost === ONE ? undefined : plan.keys.map((_, index) => times(costAt(cost, index), count));
    const isKept = this.#missed.add(note, { startedUs, count, units }, this.nowUs());
    if (!isKept) this.#sayFull();
    this.link.tellSoon();
  }

  /** A start at these keys could not be remembered, so that nobody would ever hear of it: it has to wait. */
  #fullAt({ storeKeys }: Plan, nowUs: number): TakeReply | undefined {
    if (this.#missed.hasRoomFor(storeKeys, nowUs)) return undefined;
    this.#sayFull();
    return stopped(nowUs, 0, "queue", nowUs + ROOM_POLL_US, "");
  }

  #sayFull(): void {
    const { store, onLost } = this.link.parts;
    this.#missed.sayFull((message) => onLost("*", message), store.name);
  }
}

/** The keys of a plan that is no longer in use. */
function keysOnce({ keys }: Plan): TakeKey[] {
  return keys.map(({ shared, ruleId }) => ({ rule: shared, ruleId, cost: ONE, slowUs: 0, period: undefined }));
}

/** Long before anything. */
const ALWAYS_US = Number.NEGATIVE_INFINITY;

/** A start made without asking. */
interface MissedStart {
  readonly startedUs: number;
  readonly isMissed: boolean;
}

/** Starts as they are told to a store. */
type Told = Pick<RecordOperation, "agesUs" | "counts" | "units">;

/** From when on starts count in the bucket and in the quota of a key: what was before is over. */
interface Since {
  readonly rateUs: number;
  readonly quotaUs: number;
}

function toldOf(groups: readonly StartGroup[], nowUs: number, since: readonly Since[]): Told {
  const spent = ({ atUs, units }: StartGroup): Units[] =>
    units.map(({ rate, window, quota }, index) => {
      const { rateUs, quotaUs } = since[index];
      return { rate: atUs > rateUs ? rate : 0, window, quota: atUs >= quotaUs ? quota : 0 };
    });
  const agesUs = groups.map(({ atUs }) => Math.max(0, nowUs - atUs));
  return { agesUs, counts: groups.map(({ count }) => count), units: groups.map(spent) };
}

function stopped(nowUs: number, key: number, kind: StopKind, untilUs: number, because: string): TakeReply {
  const stop = { key, kind, readyUs: untilUs, turnUs: untilUs, because };
  return { nowUs, starts: [], stop, isCooling: false, stricterAt: -1, fleet: 0, isStalePeriod: false };
}
