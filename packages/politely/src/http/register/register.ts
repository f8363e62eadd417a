import type { PolicyInput } from "../../policy/types.js";
import type { Limiter } from "../../types.js";
import { politeInterceptor } from "../undici/politeInterceptor.js";
import { closingLine } from "./closingLine.js";
import { type FoundPolicy, findPolicy, problemOf } from "./findPolicy.js";
import { GlobalDispatchers } from "./globalDispatchers.js";
import type { NodePlatform } from "./nodePlatform.js";
import { Uncovered } from "./uncovered.js";

const MARK = Symbol.for("politely.registered");

/** Makes a limiter of a policy, as `politely` does. */
type MakeLimiter = (policy: PolicyInput) => Limiter;

/**
 * Paces the global `fetch` and undici's global dispatcher of this thread from now on, and tells at exit what it saw.
 *
 * A policy that cannot be used ends the process with code 1 before the program starts, since running without it would be
 * running unpaced. A second call does nothing. POLITELY_QUIET=1 silences the line at exit.
 */
export function register(node: NodePlatform, politely: MakeLimiter): void {
  const marks = globalThis as unknown as Record<symbol, true | undefined>;
  if (marks[MARK] === true) return;
  marks[MARK] = true;

  const found = findPolicy(node);
  const limiter = limiterOf(found, politely);
  if (typeof limiter === "string") {
    node.say(limiter);
    node.exit(1);
  }
  const uncovered = new Uncovered(limiter);
  const interceptor = politeInterceptor(limiter);
  const dispatchers = new GlobalDispatchers((dispatch) => {
    const counted: typeof dispatch = (options, handler) => uncovered.send(options, () => dispatch(options, handler));
    return interceptor(counted);
  });
  dispatchers.install();
  node.listen("undici:request:create", (message) => uncovered.undiciCreated(message));
  node.listen("http.client.request.start", (message) => uncovered.nodeHttpStarted(message));

  node.onExit(() => {
    const { POLITELY_QUIET: quiet = "" } = node.env;
    if (quiet !== "" && quiet !== "0") return;
    const line = closingLine({
      workerId: node.workerId,
      origin: "origin" in found ? found.origin : "",
      stats: limiter.stats(),
      isExempt: (host) => uncovered.isExempt(host),
      nodeHttp: uncovered.nodeHttp,
      ownDispatcher: uncovered.ownDispatcher,
      isReplaced: dispatchers.isReplaced,
    });
    if (line !== undefined) node.say(line);
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
