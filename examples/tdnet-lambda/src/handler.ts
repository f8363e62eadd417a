import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from "aws-lambda";
import { openCollector, type RunResult } from "./collector.js";
import { readSettings } from "./settings.js";

/** What starts a run: the schedule, or a call of the API. */
export type RunEvent = { readonly trigger: "schedule" } | APIGatewayProxyEventV2;

/** The part of Lambda's context that is used. */
export type RunContext = Pick<Context, "awsRequestId" | "getRemainingTimeInMillis">;

/** Kept for the end: giving the lock back, writing the metrics. */
const reservedMs = 10_000;

// Straight to standard output: `console.log` would put other things on the line, and CloudWatch would not see the metrics.
const write = (line: string): void => void process.stdout.write(`${line}\n`);

// A wrong environment ends the function here, before anything is asked of anybody.
const collector = openCollector(readSettings(process.env), write);

/**
 * Collects today's list: 200 with what was found, or 409 with who is at it already.
 *
 * Throws what goes wrong, so that Lambda counts it as an error. Lambda must not try again by itself: the next run does.
 */
export async function handler(event: RunEvent, context: RunContext): Promise<APIGatewayProxyStructuredResultV2> {
  const trigger = "trigger" in event ? event.trigger : "manual call";
  const label = `${trigger}, request ${context.awsRequestId}, since ${new Date().toISOString()}`;
  const withinMs = Math.max(0, Math.floor(context.getRemainingTimeInMillis()) - reservedMs);
  return answer(await collector.run({ label, withinMs }));
}

function answer(result: RunResult): APIGatewayProxyStructuredResultV2 {
  if (result.held) {
    const { day, pageCount, documents, isComplete } = result.found;
    const body = { day, pageCount, documentCount: documents.length, isComplete, token: result.token };
    return { statusCode: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  }
  const { heldBy, remainingMs } = result;
  const detail = `Already running: ${heldBy}.`;
  const problem = { type: "about:blank", title: "Conflict", status: 409, detail, heldBy, remainingMs };
  const retryAfter = String(Math.ceil(remainingMs / 1_000));
  const headers = { "content-type": "application/problem+json", "retry-after": retryAfter };
  return { statusCode: 409, headers, body: JSON.stringify(problem) };
}
