import { statSync } from "node:fs";
import { join } from "node:path";
import { ClosedError, type LimiterEvent, politely, type SharedLimiter } from "politely";
import type { IncomingHttpHeaders } from "undici/types/header.js";
import { UsageError, WorkError } from "../errors.js";
import type { Io } from "../io.js";
import { countText } from "../words.js";
import { Feeder, type Lane } from "./feeder.js";
import type { Folder } from "./folder.js";
import { type GetOptions, hasDeadlines, policyOf, WORKER_SCOPE } from "./getOptions.js";
import { Grants, type GrantTimes } from "./grants.js";
import { HostTallies } from "./hostTallies.js";
import type { IndexLine } from "./indexLine.js";
import type { KnownPage } from "./journal.js";
import { JsonLines } from "./jsonLines.js";
import type { Keys } from "./keys.js";
import type { GetObserver, GetSummary } from "./observer.js";
import { Page } from "./page.js";
import { Problems } from "./problems.js";
import { Progress } from "./progress.js";
import { Recorder } from "./recorder.js";
import { redirectTarget } from "./redirects.js";
import { RobotsTries } from "./robotsTries.js";
import type { Shared } from "./share.js";
import { isThrottled, isTrouble } from "./throttled.js";
import { PAGE, type PageInit, Transport } from "./transport.js";
import { machineFailure, type Verdict, verdictOfError, verdictOfStatus } from "./verdict.js";
import { Waits } from "./waits.js";

/** What a worker works with. */
export interface WorkerParts {
  readonly folder: Folder;
  readonly shared: Shared;
  readonly keys: Keys;
  readonly options: GetOptions;
  readonly io: Io;
  readonly observer: GetObserver;
  /** Nobody else has this name. */
  readonly name: string;
  readonly isShared: boolean;
}

const MAX_LISTED = 10_000;
const MAX_HOSTS = 20_000;
const MAX_BYTES = 1_073_741_824;
const MAX_TROUBLES = 1_000;
/** So many bodies may be on their way to the disk before requests wait for it. */
const MAX_UNSAVED = 500;

/** One run over a list that has begun. */
export class Worker {
  readonly #limiter: SharedLimiter;
  readonly #feeder: Feeder;
  readonly #recorder: Recorder;
  readonly #transport: Transport;
  readonly #grants: Grants;
  readonly #tallies = new HostTallies();
  readonly #progress: Progress;
  /** URLs that were fetched before, and are about to be asked for. */
  readonly #known = new Map<string, KnownPage>();
  /** Of a shared list: what was taken and is not written down. A store that forgot who has what hands it out again. */
  readonly #held = new Set<string>();
  /** Begun before, and waiting to be begun once more. */
  readonly #again = new Map<string, Page>();
  readonly #lanes = new WeakMap<Page, Lane>();
  readonly #problems = new Problems();
  /** By key: why a robots.txt is asked for again, until the limiter holds the host for that. */
  readonly #robotsTroubles = new Map<string, string>();
  readonly #json: JsonLines | undefined;
  readonly #init: { readonly scopes: readonly string[]; readonly maxWait?: NonNullable<GetOptions["maxWait"]> };
  readonly #tasks = new Set<Promise<void>>();
  /** How often a request is repeated whatever happens. */
  readonly #repeats: number;
  #fatal: Error | undefined = undefined;
  #isStopped = false;
  #unsaved = 0;

  constructor(readonly parts: WorkerParts) {
    const { folder, shared, keys, options, io, name, isShared } = parts;
    const { index, journal, files } = folder;
    this.#grants = new Grants(journal);
    const { concurrency = 32, timeoutMs = 60_000, maxBytes = MAX_BYTES, maxWait } = options;
    const policy = policyOf(options);
    this.#repeats = (policy.http?.retry?.attempts ?? 1) - 1;
    const listener = {
      sending: (url: string, page: Page | undefined) => this.#sending(url, page),
      sent: (url: string, page: Page | undefined) => this.#sent(url, page),
    };
    const robots = new RobotsTries({
      repeats: this.#repeats,
      again: (url, trouble) => this.#robotsAgain(url, trouble),
      broken: (error) => this.#fail(error),
    });
    const isHolding = (url: string, status: number, headers: IncomingHttpHeaders): boolean =>
      this.#isHolding(url, status, headers);
    this.#transport = new Transport({ files, listener, timeoutMs, maxBytes, isHolding, robots });
    this.#limiter = politely(policy, { store: shared.store, fetch: this.#transport.fetch });
    this.#init = { scopes: [`${WORKER_SCOPE}${name}`], ...(maxWait === undefined ? {} : { maxWait }) };
    this.#progress = new Progress({
      keys,
      policy,
      tallies: this.#tallies,
      waits: new Waits(this.#limiter),
      concurrency: isShared ? undefined : concurrency,
    });
    const failed = (error: unknown): void => this.#fail(error);
    const written = (lines: readonly IndexLine[]): void => this.#written(lines);
    const makeRoom = (): void => folder.ballast.drop();
    this.#recorder = new Recorder({ index, journal, queue: shared.queue, written, makeRoom, failed });
    this.#feeder = new Feeder({
      queue: shared.queue,
      isShared,
      concurrency,
      hasDeadlines: hasDeadlines(options),
      begin: (url, lane) => this.#begin(url, lane),
      taken: (urls) => this.#taken(urls),
      settled: () => this.#settled(),
      failed,
    });
    // Whoever reads slowly holds back what is begun, and nothing else.
    const turned = (isFull: boolean): void => this.#feeder.hold(isFull);
    this.#json = options.isJson === true ? new JsonLines(io.stdout, turned) : undefined;
  }

  /** Works until the list is done or it is stopped. Throws `WorkError` when not everything was fetched. */
  async run(): Promise<GetSummary> {
    const { io, observer, shared } = this.parts;
    const unsubscribe = this.#limiter.subscribe((event) => this.#heard(event));
    const interrupt = (): void => this.#interrupt();
    const stop = (): void => this.#stop();
    io.interrupted.addEventListener("abort", interrupt);
    io.stopped.addEventListener("abort", stop);
    const renewing = this.#keepAlive();
    try {
      await this.#count(true);
      observer.begin(this.#progress);
      if (io.interrupted.aborted) interrupt();
      await this.#feeder.run();
    } catch (error) {
      this.#fail(error);
      await this.#feeder.run().catch(() => undefined);
    } finally {
      clearInterval(renewing);
      io.interrupted.removeEventListener("abort", interrupt);
      io.stopped.removeEventListener("abort", stop);
      await this.#settled();
      await this.#limiter.close();
      unsubscribe();
      await this.#transport.destroy();
      await shared.queue.close().catch(() => undefined);
    }
    await this.#count(false).catch(() => undefined);
    return this.#finish();
  }

  #finish(): GetSummary {
    const summary = this.#progress.summary();
    this.parts.observer.end(summary);
    this.#json?.write([summary]);
    const { total, left, failed } = summary;
    const goOn = `${countText(left)} of ${countText(total)} left; run the same command again to go on.`;
    if (this.#fatal !== undefined) {
      if (this.#fatal instanceof UsageError) throw this.#fatal;
      throw new WorkError(`${this.#fatal.message}. ${goOn}`);
    }
    if (left > 0) throw new WorkError(goOn);
    if (failed > 0) throw new WorkError(this.#problems.text(summary));
    return summary;
  }

  /** Resolves once everything that has begun is on disk and on the list. */
  async #settled(): Promise<void> {
    await Promise.all(this.#tasks);
    await this.#recorder.flush();
  }

  #begin(url: string, lane: Lane): void {
    const task = this.#fetch(url, lane);
    this.#tasks.add(task);
    task.finally(() => this.#tasks.delete(task)).catch(() => undefined);
  }

  async #fetch(url: string, lane: Lane): Promise<void> {
    const page = this.#pageOf(url, lane);
    const verdict = await this.#ask(page);
    if (page.isWaiting) lane.waiting -= 1;
    if (page.isAway) this.#feeder.returns(lane);
    page.isAway = false;
    if (verdict !== undefined && this.#isBegunAgain(page, lane)) {
      page.repeats += 1;
      page.isWaiting = true;
      this.#again.set(url, page);
      this.#feeder.again(lane, url);
      this.#feeder.ended(lane);
      return;
    }
    if (page.status !== undefined && !page.isThrottled) lane.calm += 1;
    // The next request need not wait for the disk, unless that is far behind.
    this.#unsaved += 1;
    const isBehind = this.#unsaved > MAX_UNSAVED;
    if (!isBehind) this.#feeder.ended(lane);
    try {
      await page.saved();
      // A body that is there whole stands in the index, also where the limiter could not go on after its answer.
      const judged = verdict ?? (page.hasBody ? verdictOfStatus(page.status ?? 0, page) : undefined);
      if (judged === undefined) this.#held.delete(url);
      else this.#recorder.add(page.line(judged.outcome, judged.error));
    } catch (error) {
      this.#fail(error);
    }
    this.#unsaved -= 1;
    if (isBehind) this.#feeder.ended(lane);
  }

  #pageOf(url: string, lane: Lane): Page {
    const begun = this.#again.get(url);
    this.#again.delete(url);
    const page = begun ?? new Page(url, lane.key, this.#known.get(url), lane.calm);
    this.#known.delete(url);
    this.#lanes.set(page, lane);
    return page;
  }

  async #ask(page: Page): Promise<Verdict | undefined> {
    try {
      const init = this.#initOf(page);
      // The transport shows each answer, so that each hop waits at its own host.
      for (let url = page.url, redirects = 0; ; redirects++) {
        const { status } = await this.#limiter.fetch(url, init);
        const { location } = page;
        if (location === undefined) return verdictOfStatus(status, page);
        url = redirectTarget(page.lastUrl, location, redirects);
      }
    } catch (error) {
      return this.#judge(error);
    }
  }

  /**
   * Whether a page that the limiter has given up is begun once more, because its site only wanted to be left alone for a while: one that
   * answers others gets to it, too. Each of those counts once, so that this ends with the list.
   */
  #isBegunAgain(page: Page, lane: Lane): boolean {
    if (!page.isThrottled || this.#repeats === 0) return false;
    // Where nothing is limited, nobody would hold it back until then.
    if (!this.parts.keys.words(this.parts.keys.keyOf(page.lastUrl)).isLimited) return false;
    // Who is stopped while he waits to ask again has not had all his tries: he is left.
    return this.#progress.isStopping || page.repeats < lane.calm - page.calmBefore;
  }

  /** What a failure means; undefined when the URL is to be handed out again. */
  #judge(error: unknown): Verdict | undefined {
    if (machineFailure(error) !== undefined) {
      this.#fail(error);
      return undefined;
    }
    // It was not begun, or broken off by us.
    return error instanceof ClosedError || this.#isStopped ? undefined : verdictOfError(error);
  }

  #initOf(page: Page): PageInit {
    return { [PAGE]: page, politely: this.#init } as PageInit;
  }

  /** Looks up what is known of URLs that were just taken from the list. A file that is gone, or not as long as it was, is fetched anew. */
  #taken(given: readonly string[]): readonly string[] {
    const urls = this.#held.size === 0 ? given : given.filter((url) => !this.#held.has(url));
    if (urls.length === 0) return urls;
    if (this.parts.isShared) for (const url of urls) this.#held.add(url);
    const { journal, path } = this.parts.folder;
    for (const [url, page] of journal.pages(urls)) {
      const found = statSync(join(path, page.file), { throwIfNoEntry: false });
      if (found?.isFile() === true && found.size === page.bytes) this.#known.set(url, page);
    }
    return urls;
  }

  /** A request is about to be sent. Returns when it was granted. */
  #sending(url: string, page: Page | undefined): GrantTimes {
    const key = this.parts.keys.keyOf(url);
    const granted = this.#grants.take(key);
    const waitedMs = page === undefined ? 0 : page.waitedUntil(granted.beganMs);
    this.#tallies.started(key, granted.startedMs, waitedMs);
    this.#progress.starts += 1;
    this.#progress.inFlight += 1;
    if (page === undefined) return granted;
    this.parts.observer.started(key, url, waitedMs);
    const lane = this.#lanes.get(page);
    if (lane === undefined) return granted;
    this.#feeder.sending(lane);
    if (page.isWaiting) {
      page.isWaiting = false;
      this.#feeder.started(lane, waitedMs);
    }
    return granted;
  }

  #sent(url: string, page: Page | undefined): void {
    this.#progress.inFlight -= 1;
    const tally = this.#tallies.of(this.parts.keys.keyOf(url));
    tally.inFlight -= 1;
    if (page === undefined) return;
    if (page.isThrottled) tally.throttled += 1;
    const lane = this.#lanes.get(page);
    if (lane === undefined) return;
    if (page.status !== undefined) this.#feeder.answered(lane, page.isThrottled);
    this.#feeder.sent(lane);
    const next = page.redirectsTo;
    if (!page.isAway && next !== undefined) page.isAway = this.#isElsewhere(next, lane) && this.#feeder.leaves(lane);
  }

  #isElsewhere(url: string, { key }: Lane): boolean {
    try {
      return this.parts.keys.keyOf(url) !== key;
    } catch {
      // The limiter says what is wrong with it, and where it was read.
      return false;
    }
  }

  #written(lines: readonly IndexLine[]): void {
    for (const line of lines) {
      this.#held.delete(line.url);
      this.#progress.ended(line);
      this.#problems.add(line);
      this.parts.observer.finished(line);
    }
    this.#json?.write(lines);
  }

  /** Whether the limiter leaves a host alone after such an answer: the sooner it hears of it, the better. */
  #isHolding(url: string, status: number, headers: IncomingHttpHeaders): boolean {
    const { keys } = this.parts;
    const { isLimited, isBackingOff } = keys.words(keys.keyOf(url));
    return isLimited && (isThrottled(status, headers) || (isBackingOff && isTrouble(status)));
  }

  #robotsAgain(url: string, trouble: string): void {
    if (this.#robotsTroubles.size >= MAX_TROUBLES) this.#robotsTroubles.clear();
    this.#robotsTroubles.set(this.parts.keys.keyOf(url), `robots.txt could not be had: ${trouble}`);
  }

  #heard(event: LimiterEvent): void {
    const { observer } = this.parts;
    this.#grants.heard(event);
    if (event.type === "cooldown") {
      const because = this.#robotsTroubles.get(event.key) ?? event.because;
      this.#robotsTroubles.delete(event.key);
      observer.cooling(event.key, event.untilMs, because);
    } else if (event.type === "warn" || event.type === "outage") observer.log(`${event.key}: ${event.message}`);
  }

  /** Counts anew what the list says. */
  async #count(isFirst: boolean): Promise<void> {
    const { queue } = this.parts.shared;
    const counts = await queue.counts();
    this.#progress.counted(counts);
    if (isFirst) this.#progress.finishedBefore = counts.fetched + counts.refused;
    if (!isFirst && !this.parts.isShared) return;
    const hosts = await queue.countsByKey(MAX_HOSTS);
    this.#progress.countedHosts(hosts);
    if (isFirst) for (const { key, total } of hosts.slice(0, MAX_LISTED)) this.parts.observer.listed(key, total);
  }

  /** Tells the others that this process lives, and hears how far they are. */
  #keepAlive(): NodeJS.Timeout | undefined {
    const { isShared, options, shared, observer } = this.parts;
    if (!isShared) return undefined;
    const tick = async (): Promise<void> => {
      const count = await shared.queue.renew();
      if (count > 0) observer.log(`${countText(count)} URLs of a worker that is gone are handed out again`);
      await this.#count(false);
    };
    const everyMs = (options.leaseMs ?? 30_000) / 3;
    return setInterval(() => void tick().catch(() => undefined), everyMs);
  }

  /** The first Ctrl-C: what is in flight ends. */
  #interrupt(): void {
    this.#progress.isStopping = true;
    this.#feeder.stop();
    // Refuses whoever waits; what is in flight goes on.
    this.#limiter.close().catch(() => undefined);
  }

  /** The second Ctrl-C: what is in flight is broken off. */
  #stop(): void {
    this.#isStopped = true;
    this.#interrupt();
    this.#transport.destroy().catch(() => undefined);
  }

  #fail(error: unknown): void {
    this.#fatal ??= fatalOf(error);
    this.#stop();
  }
}

function fatalOf(error: unknown): Error {
  const failure = machineFailure(error);
  if (failure !== undefined) return new WorkError(failure);
  const problem = error instanceof Error ? error.message || error.name : String(error);
  return error instanceof UsageError ? error : new WorkError(`it cannot go on: ${problem.replace(/\.$/, "")}`);
}
