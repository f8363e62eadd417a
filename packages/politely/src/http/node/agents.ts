import type { ConnectionOptions, NodeRequest } from "./paceRequest.js";

/** The part of an `http.Agent` that is called here. Every `ClientRequest` with an agent calls it from its constructor. */
export interface NodeAgent {
  addRequest: (request: NodeRequest, connection: ConnectionOptions, ...legacy: unknown[]) => void;
}

/** `node:http`, as far as it is looked at here. */
export interface NodeHttp {
  readonly globalAgent: NodeAgent;
  readonly Agent: (abstract new (...options: never[]) => NodeAgent) & { readonly prototype: NodeAgent };
  readonly ClientRequest: { readonly prototype: object };
}

/** Is given each request that asks an agent for a connection, and calls `proceed` to let the agent have it. */
export type Pace = (request: NodeRequest, connection: ConnectionOptions, proceed: () => void) => void;

/** `node:http` or `node:https`; undefined where there is none, as in browsers. */
export function nodeHttp(name: "node:http" | "node:https"): NodeHttp | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => NodeHttp | undefined } };
  return process?.getBuiltinModule?.(name);
}

/** The same agent, with the same connections, whose requests are paced. */
export function pacedAgent<Agent extends NodeAgent>(agent: Agent, pace: Pace): Agent {
  const addRequest: NodeAgent["addRequest"] = (request, connection, ...legacy) =>
    pace(request, connection, () => agent.addRequest(request, connection, ...legacy));
  return Object.create(agent, { addRequest: { value: addRequest } }) as Agent;
}

/**
 * Paces the requests of all agents of this thread from now on. What an agent does with a request before it calls Node's own
 * `addRequest` is done at once, as it expects.
 */
export function paceAllAgents({ Agent, ClientRequest }: NodeHttp, pace: Pace): void {
  const { addRequest } = Agent.prototype;
  Agent.prototype.addRequest = function paced(this: NodeAgent, request, connection, ...legacy) {
    pace(request, connection, () => Reflect.apply(addRequest, this, [request, connection, ...legacy]));
  };
  // The agents of agent-base before version 7, which many proxies' agents are made of, are none of Node's.
  Object.defineProperty(ClientRequest.prototype, "agent", {
    configurable: true,
    set(this: object, agent: NodeAgent | undefined) {
      const isForeign = agent !== undefined && "callback" in agent && !(agent instanceof Agent);
      const value = isForeign ? pacedAgent(agent, pace) : agent;
      Object.defineProperty(this, "agent", { value, configurable: true, enumerable: true, writable: true });
    },
  });
}
