import { createRequire } from "node:module";
import { resolve } from "node:path";
import type { FastifyInstance } from "fastify";
import { PolicyError } from "politely";
import { UsageError } from "../errors.js";
import type { Io } from "../io.js";
import { countText, durationText } from "../words.js";
import type { ApiParts } from "./api/apiParts.js";
import { metricsRoutes } from "./api/metricsRoutes.js";
import { createService, type Service } from "./createService.js";
import { feedRoutes } from "./feed/feedRoutes.js";
import { pageRoutes } from "./feed/pageRoutes.js";
import { openDoors } from "./openDoors.js";
import type { ServeOptions } from "./serveOptions.js";
import { openState, type ServiceState } from "./state.js";

/** How long the store may take to hear of the end, in milliseconds. */
const FAREWELL_MS = 5_000;

const { version } = createRequire(import.meta.url)("../../package.json") as { readonly version: string };

/**
 * Serves until it is interrupted, then lets permits come back for the time of grace, and ends.
 *
 * One line on stderr says where it is and what applies, one at the end what was done. Throws `UsageError` for a policy or an address that cannot be right, and
 * `WorkError` where a port or the store cannot be had; nothing is left open then.
 */
export async function runServe(options: ServeOptions, io: Io): Promise<void> {
  const startedAtMs = performance.now();
  const log = (line: string): void => void io.stderr.write(`politely serve: ${line}\n`);
  const state = await stateOf(options, io);
  try {
    const service = await createService({
      state,
      policy: options.policy.policy,
      token: options.token,
      allowedHosts: options.allowedHosts,
      isWritable: options.isWritable,
      maxWaiting: options.maxWaiting,
      version,
      log,
      onAnswered: options.isLoggingRequests ? (...answer) => log(requestLine(...answer)) : undefined,
      addData,
      addPage: pageRoutes,
    });
    try {
      await serve(service, { options, io, state, log });
    } finally {
      await service.close();
    }
    log(await endLine(state, service, performance.now() - startedAtMs));
  } finally {
    await within(state.close(), FAREWELL_MS);
  }
}

interface Serving {
  readonly options: ServeOptions;
  readonly io: Io;
  readonly state: ServiceState;
  readonly log: (line: string) => void;
}

async function serve(service: Service, { options, io, state, log }: Serving): Promise<void> {
  const socket = options.socket === undefined ? undefined : resolve(io.cwd, options.socket);
  const doors = await openDoors({ ...options, socket }, { service, limiter: state.limiter, log });
  try {
    const limits = options.policy.path === "" ? "known sites' limits, else 1/s" : `limits of ${options.policy.path}`;
    log(`${doors.addresses.join(", ")}; ${limits}; state in ${stateWords(options, state)}`);
    await aborted(io.interrupted);
    service.dismiss();
    // The proxy's requests that are under way have the same time as the permits.
    const hurry = AbortSignal.any([io.stopped, AbortSignal.timeout(Math.max(1, options.graceMs))]);
    const proxyClosed = doors.closeProxy(options.graceMs);
    await Promise.race([Promise.all([service.permits.emptied(), proxyClosed]), aborted(hurry)]);
  } finally {
    await doors.close(io.stopped.aborted);
  }
}

/** What is beside the API itself and needs the token as well. */
function addData(app: FastifyInstance, parts: ApiParts): void {
  const { limiter, book, isWritable, callers, turnedAway } = parts;
  const { stopping } = callers;
  feedRoutes(app, { limiter, policy: () => book.current(), isWritable, version, stopping, turnedAway });
  metricsRoutes(app, parts);
}

async function stateOf(options: ServeOptions, io: Io): Promise<ServiceState> {
  const { data, share } = options;
  try {
    return await openState({ policy: options.policy.policy, cwd: io.cwd, data, share });
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    const problems = error.problems.map(({ path, message }) => `${path}: ${message}`).join("; ");
    throw new UsageError(`the policy has problems: ${problems}`);
  }
}

function stateWords({ data, share }: ServeOptions, { store }: ServiceState): string {
  return store === "sqlite" ? `sqlite file ${data ?? share}` : store;
}

async function endLine(state: ServiceState, { turnedAway, permits }: Service, tookMs: number): Promise<string> {
  const sums = { granted: 0, waited: 0, refused: turnedAway.counts.acquire + turnedAway.counts.proxy };
  for (const row of await state.limiter.stats()) {
    sums.granted += row.granted;
    sums.waited += row.delayedRequests;
    sums.refused += row.refused + row.expired;
  }
  const { lapsedCount } = permits;
  const lapsed =
    lapsedCount === 0 ? "" : `, ${countText(lapsedCount)} ${lapsedCount === 1 ? "permit" : "permits"} lapsed`;
  const { granted, waited, refused } = sums;
  return `ended after ${durationText(tookMs)}; ${countText(granted)} granted, ${countText(waited)} of them waited, ${countText(refused)} refused${lapsed}`;
}

function requestLine(method: string, path: string, status: number, tookMs: number): string {
  // What a caller sends must not draw on a terminal.
  return `${method} ${path.replace(/[^\x21-\x7e]/g, "?")} ${status} ${Math.round(tookMs)} ms`;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

async function within(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
