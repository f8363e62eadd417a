import http, { type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import axios from "axios";
import followRedirects from "follow-redirects";
import { Gaxios } from "gaxios";
import got from "got";
import needle from "needle";
import nodeFetch from "node-fetch";
import Stripe from "stripe";
import superagent from "superagent";

/** What a client made of an answer. */
export interface Asked {
  readonly status: number;
  /** The name of the only table in the answer. */
  readonly table: string;
}

/** An HTTP client of npm, as its documentation shows it. It repeats nothing, and knows nothing of Politely. */
export interface Client {
  readonly name: string;
  /** False for clients of one service, which follow no redirects. */
  readonly follows: boolean;
  /** False when its users cannot give a request up. */
  readonly aborts: boolean;
  ask(url: string, signal?: AbortSignal): Promise<Asked>;
}

/** What the site answers with: something that each of the clients can read. */
export function tablesOf(name: string): string {
  return JSON.stringify({ TableNames: [name] });
}

function asked(status: number, body: unknown): Asked {
  const { TableNames: [table] = [""] } = (
    typeof body === "string" && body.startsWith("{") ? JSON.parse(body) : body
  ) as {
    TableNames?: string[];
  };
  return { status, table };
}

const usual = { follows: true, aborts: true };
const ofOneService = { follows: false, aborts: true };

export const clients: readonly Client[] = [
  {
    name: "http.get",
    ...usual,
    follows: false,
    ask: (url, signal) => ended(http, url, signal),
  },
  {
    name: "follow-redirects",
    ...usual,
    ask: (url, signal) => ended(followRedirects.http, url, signal),
  },
  {
    name: "axios",
    ...usual,
    async ask(url, signal) {
      const { status, data } = await axios.get<unknown>(url, { validateStatus: () => true, ...(signal && { signal }) });
      return asked(status, data);
    },
  },
  {
    name: "got",
    ...usual,
    async ask(url, signal) {
      const options = { retry: { limit: 0 }, throwHttpErrors: false, ...(signal && { signal }) };
      const { statusCode, body } = await got(url, options);
      return asked(statusCode, body);
    },
  },
  {
    name: "node-fetch",
    ...usual,
    async ask(url, signal) {
      const response = await nodeFetch(url, { agent: http.globalAgent, ...(signal && { signal }) });
      return asked(response.status, await response.text());
    },
  },
  {
    name: "superagent",
    ...usual,
    async ask(url, signal) {
      const request = superagent.get(url).ok(() => true);
      const given = new Promise<never>((_resolve, reject) => {
        signal?.addEventListener("abort", () => {
          request.abort();
          reject(signal.reason);
        });
      });
      const { status, text: body } = await Promise.race([request, given]);
      return asked(status, body);
    },
  },
  {
    name: "needle",
    ...usual,
    async ask(url, signal) {
      const options = { follow_max: 5, parse: false, agent: http.globalAgent, ...(signal && { signal }) };
      const { statusCode = 0, body } = await needle("get", url, options);
      return asked(statusCode, String(body));
    },
  },
  {
    name: "gaxios",
    ...usual,
    async ask(url, signal) {
      const options = { url, retry: false, validateStatus: () => true, ...(signal && { signal }) };
      const { status, data } = await new Gaxios().request<unknown>(options);
      return asked(status, data);
    },
  },
  {
    name: "stripe",
    ...ofOneService,
    aborts: false,
    async ask(url) {
      const { hostname: host, port, pathname } = new URL(url);
      const stripe = new Stripe("sk_test", { protocol: "http", host, port, maxNetworkRetries: 0, telemetry: false });
      try {
        return asked(200, await stripe.rawRequest("GET", pathname));
      } catch (error) {
        if (error instanceof Stripe.errors.StripeError && error.statusCode !== undefined)
          return asked(error.statusCode, {});
        throw error;
      }
    },
  },
  {
    name: "@aws-sdk/client-dynamodb",
    ...ofOneService,
    async ask(url, signal) {
      const credentials = { accessKeyId: "a", secretAccessKey: "b" };
      const client = new DynamoDBClient({ endpoint: url, region: "eu-west-1", credentials, maxAttempts: 1 });
      try {
        const answer = await client.send(new ListTablesCommand({}), signal && { abortSignal: signal });
        return asked(answer.$metadata.httpStatusCode ?? 0, answer);
      } catch (error) {
        const { $metadata: { httpStatusCode: status } = {} } = error as { $metadata?: { httpStatusCode?: number } };
        if (status !== undefined) return asked(status, {});
        throw error;
      } finally {
        client.destroy();
      }
    },
  },
];

/** Asks by a module like `node:http`. */
async function ended(
  module: typeof http | typeof followRedirects.http,
  url: string,
  signal: AbortSignal | undefined,
): Promise<Asked> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    module.get(url, { ...(signal && { signal }) }, resolve).on("error", reject);
  });
  return asked(answer.statusCode ?? 0, await text(answer));
}
