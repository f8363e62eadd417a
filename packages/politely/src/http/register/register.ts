import type { PolicyInput } from "../../policy/types.js";
import type { Limiter } from "../../types.js";
import { exchangeOf } from "../exchange.js";
import { paceAllAgents } from "../node/agents.js";
import { PACED, paceRequest } from "../node/paceRequest.js";
import { politeInterceptor } from "../undici/politeInterceptor.js";
import { type FoundPolicy, problemOf } from "./findPolicy.js";
import { GlobalDispatchers } from "./globalDispatchers.js";
import type { NodeProcess } from "./nodeProcess.js";
import { Sightings } from "./sightings.js";

const MARK = Symbol.for("politely.registered");
const STDERR = 2;

/** Makes a limiter of a policy, as `politely` does. */
type MakeLimiter = (policy: PolicyInput) => Limiter;

/**
 * Paces the global `fetch`, undici's global dispatcher, `node:http` and `node:https` of this thread from now on, and tells at
 * exit what it saw.
 *
 * A policy that cannot be used ends the process with code 1 before the program starts, since running without it would be
 * running unpaced. A second call does nothing. POLITELY_QUIET=1 silences the line at exit.
 */
export function register(process: NodeProcess, found: FoundPolicy, politely: MakeLimiter): void {
  const marks = globalThis as unknown as Record<symbol, true | undefined>;
  if (marks[MARK] === true) return;
  marks[MARK] = true;

  const limiter = limiterOf(found, politely);
  if (typeof limiter === "string") {
    say(process, limiter);
    process.exit(1);
  }
  const sightings = new Sightings(limiter);
  const interceptor = politeInterceptor(limiter);
  const dispatchers = new GlobalDispatchers((dispatch) => {
    const counted: typeof dispatch = (options, handler) => sightings.send(options, () => dispatch(options, handler));
    return interceptor(counted);
  });
  dispatchers.install();
  const exchange = exchangeOf(limiter, "politely/register");
  paceAllAgents(process.getBuiltinModule("node:http"), (request, connection, proceed) => {
    sightings.paced.add(request);
    // An adapter of the program's own has paced it.
    if (connection[PACED] === true) proceed();
    else paceRequest(exchange, request, connection, proceed);
  });
  const channels = process.getBuiltinModule("node:diagnostics_channel");
  channels.subscribe("undici:request:create", sightings.undiciCreated);
  channels.subscribe("http.client.request.start", sightings.nodeHttpStarted);

  process.once("exit", () => {
    const { POLITELY_QUIET: quiet = "" } = process.env;
    if (quiet !== "" && quiet !== "0") return;
    const { isEmpty, text } = sightings.line("origin" in found ? found.origin : "", dispatchers.isReplaced);
    const { isMainThread, threadId } = process.getBuiltinModule("node:worker_threads");
    if (isMainThread) say(process, `politely: ${text}`);
    else if (!isEmpty) say(process, `politely (worker ${threadId}, which has a limiter of its own): ${text}`);
  });
}

/** The limiter of a policy, or what to tell when there can be none. */
function limiterOf(found: FoundPolicy, politely: MakeLimiter): Limiter | string {
  if ("problem" in found) return found.problem;
  try {
    return politely(found.policy);
  } catch (error) {
    return problemOf(found.origin.replace(/^policy /, ""), error);
  }
}

/** Writes to stderr at once: process.stderr is too late when a worker ends. */
function say(process: NodeProcess, line: string): void {
  try {
    process.getBuiltinModule("node:fs").writeSync(STDERR, `${line}\n`);
  } catch {
    // Nobody is there to read it.
  }
}
