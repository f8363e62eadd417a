// What a process or thread of a proof does: it makes requests through a limiter with a store, and logs each start, until told to stop.
import { setTimeout as delay } from "node:timers/promises";
import { machineUs } from "../member.mjs";
import { watchStore } from "./watchStore.mjs";

/**
 * The requests for one host: how many `callers` make them, each one after the other, and at `most` how many; how long each takes,
 * `holdMs` (from and to); which share is returned `unused`; `status` and `headers` of every answer.
 *
 * @typedef {{ host: string; callers?: number; most?: number; holdMs?: [number, number]; unused?: number; status?: number; headers?: Record<string, string> }} Load
 *
 * @typedef {ReturnType<typeof import("../member.mjs").joinFleet>} Member
 * @typedef {{ store: any; close(): unknown }} Opened
 */

/**
 * Works from `go` to `stop`, on what the member's input says: `policy` and `options` of the limiter, `loads`, and a `seed`.
 *
 * Commands: `look` logs what the store says about each host, `tally` what was asked of it so far; `answer` sets status and headers of a host's answers from now on;
 * `try` asks for a start that need not wait; `acquire` takes a permit and keeps it until `release`.
 *
 * @param {Member} member
 * @param {Opened} opened
 */
export async function work(member, opened) {
  const { politely } = await member.library("index.js");
  const { policy, options = {} } = member.input;
  const worker = new Worker(member, (onSettled) => {
    const watched = watchStore(opened.store, onSettled);
    return { limiter: politely(policy, { ...options, store: watched.store }), tallies: watched.tallies };
  });
  worker.listen();
  await member.ready();
  const begun = process.cpuUsage();
  await worker.work();
  member.leave();
  await worker.limiter.close();
  const { user, system } = process.cpuUsage(begun);
  member.log({ type: "done", tallies: worker.tallies, cpuUs: user + system });
  await opened.close();
}

const told = ["outage", "warn", "expire", "cooldown"];

class Worker {
  /** @type {Load[]} */
  #loads;
  #member;
  #random;
  /** Starts that the store has not taken back yet. @type {Map<string, { serial: number; unused: boolean }>} */
  #underWay = new Map();

  /**
   * @param {Member} member
   * @param {(onSettled: (host: string, token: number, nowUs: number) => void) => { limiter: any; tallies: object }} make
   */
  constructor(member, make) {
    const { loads = [], seed = 1 } = member.input;
    this.#member = member;
    this.#loads = loads;
    this.#random = randomFrom(`${seed} ${member.id}`);
    const { limiter, tallies } = make((host, token, nowUs) => this.#settled(`${host} ${token}`, nowUs));
    this.limiter = limiter;
    this.tallies = tallies;
    limiter.subscribe((/** @type {any} */ event) => {
      if (told.includes(event.type)) member.log({ ...event, type: `event ${event.type}` });
    });
  }

  /** Resolves when it is told to stop and everybody has. */
  async work() {
    const { stopping } = this.#member;
    const stopped = new Promise((resolve) => {
      if (stopping.aborted) resolve(undefined);
      stopping.addEventListener("abort", () => resolve(undefined));
    });
    const callers = this.#loads.flatMap((load) => Array.from({ length: load.callers ?? 1 }, () => this.#call(load)));
    await Promise.all([...callers, stopped]);
  }

  listen() {
    const { limiter } = this;
    const member = this.#member;
    /** @type {{ host: string; permit: any; serial: number }[]} */
    const kept = [];
    member.onCommand("look", async () => {
      for (const { host } of this.#loads) {
        const stats = await limiter.stats(host, { fleet: true });
        member.log({ type: "looked", host, starts: stats.totalRequests });
      }
    });
    member.onCommand("tally", () => member.log({ type: "tally", tallies: this.tallies }));
    member.onCommand("answer", (data) => {
      const { host, status, headers } = /** @type {Load} */ (data);
      for (const load of this.#loads) if (load.host === host) Object.assign(load, { status, headers });
    });
    member.onCommand("try", async (data) => {
      const { host } = /** @type {Load} */ (data);
      const permit = await limiter.tryAcquire(host);
      if (permit !== undefined) await this.#end(host, permit, this.#begin(host, permit), "success");
      member.log({ type: "tried", host, isGranted: permit !== undefined });
    });
    member.onCommand("acquire", async (data) => {
      const { host } = /** @type {Load} */ (data);
      const permit = await this.#ask(host);
      if (permit !== undefined) kept.push({ host, permit, serial: this.#begin(host, permit) });
    });
    member.onCommand("release", async () => {
      const held = kept.shift();
      if (held !== undefined) await this.#end(held.host, held.permit, held.serial, "success");
      member.log({ type: "gave back" });
    });
  }

  /** One caller: asks, works, releases, again and again. @param {Load} load */
  async #call(load) {
    const { host, holdMs = [0, 0], unused = 0, most = Number.POSITIVE_INFINITY } = load;
    for (let made = 0; made < most && !this.#member.stopping.aborted; ) {
      const permit = await this.#ask(host);
      if (permit === undefined) continue;
      made += 1;
      const serial = this.#begin(host, permit);
      const isUnused = this.#random() < unused;
      const forMs = holdMs[0] + this.#random() * (holdMs[1] - holdMs[0]);
      if (!isUnused && forMs > 0) await delay(forMs);
      const { status, headers = {} } = load;
      const answer = status === undefined ? "success" : { status, headers };
      await this.#end(host, permit, serial, isUnused ? "unused" : answer);
    }
  }

  /** Asks for a start; undefined when there is none, which is logged with what was said and how long it took. @param {string} host */
  async #ask(host) {
    const member = this.#member;
    const askedUs = machineUs();
    try {
      return await this.limiter.acquire(host, { signal: member.stopping });
    } catch (error) {
      if (member.stopping.aborted) return undefined;
      const { code, message } = /** @type {any} */ (error);
      member.log({ type: "refused", host, code, message, tookUs: machineUs() - askedUs });
      await delay(50);
      return undefined;
    }
  }

  /** @param {string} host @param {any} permit */
  #begin(host, permit) {
    const { token, startedAtMs } = permit;
    // A start without the store is on no timeline but this process's: the log's own clock tells when it was.
    const isStore = token !== undefined;
    const startedUs = isStore ? Math.round(startedAtMs * 1000) : machineUs();
    const serial = this.#member.start({ key: host, startedUs, isStore, ...(isStore ? { token } : {}) });
    if (isStore) this.#underWay.set(`${host} ${token}`, { serial, unused: false });
    return serial;
  }

  /** @param {string} host @param {any} permit @param {number} serial @param {any} outcome */
  async #end(host, permit, serial, outcome) {
    const unused = outcome === "unused";
    const start = this.#underWay.get(`${host} ${permit.token}`);
    if (start !== undefined) start.unused = unused;
    this.#member.log({ type: "releasing", serial, unused, status: outcome.status });
    await permit.release(outcome);
  }

  /** @param {string} name @param {number} nowUs */
  #settled(name, nowUs) {
    const start = this.#underWay.get(name);
    if (start === undefined) return;
    this.#underWay.delete(name);
    this.#member.release(start.serial, { releasedUs: nowUs, unused: start.unused });
  }
}

/** Numbers from 0 up to 1, always the same for the same text. @param {string} text */
function randomFrom(text) {
  let state = Array.from(text).reduce((sum, letter) => Math.imul(sum, 31) + letter.charCodeAt(0), 7) >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
