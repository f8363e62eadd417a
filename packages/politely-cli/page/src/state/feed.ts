import type { FeedOpening } from "../../../src/serve/feed/feedReaders.js";
import type { FeedTotals, HostRow, HostState } from "../../../src/serve/feed/row.js";
import { type Host, hostOf } from "./host.js";
import { ask, keepToken, readToken, ServiceError } from "./service.js";
import { readEvents, type ServerEvent } from "./sse.js";

/** How the page and the service are connected. */
export type Link =
  | { readonly kind: "opening" }
  | { readonly kind: "live" }
  /** `retryAtMs` is on `performance.now()`. */
  | { readonly kind: "lost"; readonly why: string; readonly retryAtMs: number }
  /** The service wants a token; `isRefused` when the one given is not it. */
  | { readonly kind: "token"; readonly isRefused: boolean };

/** A host that has another state than before. */
export interface StateChange {
  readonly domain: string;
  readonly from: HostState;
  readonly to: HostState;
}

/** The service keeps at most 20,000 hosts; what comes beyond is not kept here either. */
const MAX_HOSTS = 25_000;
const MAX_CHANGES = 1_000;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 30_000;
/** A comment comes every 15 s. Without a word for so long the line is dead, whatever the browser thinks. */
const SILENCE_MS = 40_000;

/** Follows the feed of the service, and connects again when it breaks off, each time after a longer wait. */
export class Feed {
  readonly hosts = new Map<string, Host>();
  opening: Omit<FeedOpening, "rows"> | undefined;
  totals: FeedTotals | undefined;
  link: Link = { kind: "opening" };
  /** Grows with every change of a host. */
  version = 0;
  readonly #listeners = new Set<() => void>();
  #changes: StateChange[] = [];
  #isTelling = false;
  #aheadMs = 0;
  #retryMs = FIRST_RETRY_MS;
  #timer: number | undefined;
  #silence: number | undefined;
  #abort: AbortController | undefined;

  /** Calls `listener` after changes, at most once a frame. Returns how to stop that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Connects now, instead of what is connected. */
  connect(): void {
    window.clearTimeout(this.#timer);
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    void this.#follow(abort).catch((error: unknown) => {
      if (this.#abort === abort) this.#broken(error);
    });
  }

  /** Connects with this token. */
  useToken(token: string): void {
    keepToken(token);
    this.#setLink({ kind: "opening" });
    this.connect();
  }

  /** The changes of state since the last call, at most 1,000. */
  takeChanges(): readonly StateChange[] {
    const changes = this.#changes;
    this.#changes = [];
    return changes;
  }

  async #follow(abort: AbortController): Promise<void> {
    this.#listenFor(abort);
    const response = await ask("v1/feed", { signal: abort.signal, headers: { accept: "text/event-stream" } });
    if (response.body === null) throw new ServiceError(0, "The service answered without a feed.");
    for await (const event of readEvents(response.body, () => this.#listenFor(abort))) {
      if (this.#abort !== abort) return;
      this.#hear(event);
    }
    throw new ServiceError(0, "The service ended the connection.");
  }

  #listenFor(abort: AbortController): void {
    window.clearTimeout(this.#silence);
    this.#silence = window.setTimeout(() => abort.abort(), SILENCE_MS);
  }

  #hear({ event, data }: ServerEvent): void {
    const content: unknown = JSON.parse(data);
    if (event === "hello") this.#begin(content as FeedOpening);
    else if (event === "rows") this.#take(content as readonly HostRow[]);
    else if (event === "totals") this.totals = content as FeedTotals;
    else if (event === "gone")
      for (const domain of (content as { domains: readonly string[] }).domains) this.hosts.delete(domain);
    this.version += 1;
    this.#tell();
  }

  #begin({ rows, ...opening }: FeedOpening): void {
    this.hosts.clear();
    this.#changes = [];
    this.opening = opening;
    this.#aheadMs = Date.now() - opening.now;
    this.#retryMs = FIRST_RETRY_MS;
    this.#take(rows);
    this.#setLink({ kind: "live" });
  }

  #take(rows: readonly HostRow[]): void {
    for (const row of rows) {
      const before = this.hosts.get(row.domain);
      if (before === undefined && this.hosts.size >= MAX_HOSTS) continue;
      if (before !== undefined && before.state !== row.state && this.#changes.length < MAX_CHANGES) {
        this.#changes.push({ domain: row.domain, from: before.state, to: row.state });
      }
      this.hosts.set(row.domain, hostOf(row, this.#aheadMs));
    }
  }

  #broken(error: unknown): void {
    window.clearTimeout(this.#silence);
    if (error instanceof ServiceError && error.status === 401) {
      this.#setLink({ kind: "token", isRefused: readToken() !== "" });
      return;
    }
    const why = error instanceof ServiceError ? error.message : "The connection broke off.";
    const retryMs = this.#retryMs;
    this.#retryMs = Math.min(LAST_RETRY_MS, retryMs * 2);
    this.#setLink({ kind: "lost", why, retryAtMs: performance.now() + retryMs });
    this.#timer = window.setTimeout(() => this.connect(), retryMs);
  }

  #setLink(link: Link): void {
    this.link = link;
    this.#tell();
  }

  #tell(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    // A page in the background has no frames, and needs none.
    requestAnimationFrame(() => {
      this.#isTelling = false;
      for (const listener of this.#listeners) listener();
    });
  }
}
