// A stand-in for a Lambda execution environment: loads the handler, invokes it once for each line of standard input, `{ "trigger", "requestId", "timeoutMs" }`,
// and writes what the handler writes, and a line for each answer. Ends with its input. The first argument, if any, is another handler to load.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import type { RunContext, RunEvent } from "../handler.js";

interface Invocation {
  readonly trigger: "schedule" | "manual";
  readonly requestId: string;
  readonly timeoutMs: number;
}

interface HandlerModule {
  readonly handler: (event: RunEvent, context: RunContext) => Promise<{ statusCode?: number; body?: string }>;
}

const [, , handlerPath] = process.argv;
const handlerUrl = handlerPath === undefined ? new URL("../handler.js", import.meta.url) : pathToFileURL(handlerPath);
const { handler } = (await import(handlerUrl.href)) as HandlerModule;

const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
say({ type: "ready" });
for await (const line of createInterface({ input: process.stdin })) void invoke(JSON.parse(line) as Invocation);
process.exit();

async function invoke({ trigger, requestId, timeoutMs }: Invocation): Promise<void> {
  const untilMs = performance.now() + timeoutMs;
  const context = { awsRequestId: requestId, getRemainingTimeInMillis: () => untilMs - performance.now() };
  // What API Gateway sends has a hundred fields, none of which the handler looks at.
  const event = (trigger === "schedule" ? { trigger } : { version: "2.0", requestContext: {} }) as RunEvent;
  try {
    const { statusCode, body = "null" } = await handler(event, context);
    say({ type: "answer", requestId, statusCode, body: JSON.parse(body) as unknown });
  } catch (error) {
    say({ type: "answer", requestId, error: String(error) });
  }
}
