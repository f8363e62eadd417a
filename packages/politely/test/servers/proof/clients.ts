import { setImmediate } from "node:timers/promises";
import axios from "axios";
import got from "got";
import ky from "ky";
import { Agent, request } from "undici";
import { politeAxios } from "../../../src/http/axios/index.js";
import { politeGot } from "../../../src/http/got/index.js";
import { politeKy } from "../../../src/http/ky/index.js";
import { politeInterceptor } from "../../../src/http/undici/index.js";
import { type Limiter, type PolicyInput, politely } from "../../../src/index.js";
import { runProgram } from "../../http/adapters/register/runProgram.js";

/** What came of a wish. */
export interface Asked {
  /** How often each answer came: by status, or by the code of the error where there was none. */
  readonly tally: Readonly<Record<string, number>>;
  /** How many starts were granted while a 429 held the host, by the limiter's own events. 0 for a program that nobody looks into. */
  readonly heldGrantCount: number;
}

/** What is asked for. */
export interface Wish {
  readonly policy: PolicyInput;
  readonly origins: readonly string[];
  /** How many requests go to each origin, all of them asked for at once. */
  readonly requestsEach: number;
}

/** One way to be polite. */
export interface Client {
  readonly name: string;
  /** Asks for everything at once under a limiter of its own, reads every answer to its end, and resolves when all are there or have failed. */
  ask(wish: Wish): Promise<Asked>;
}

/**
 * Every adapter, with the retries of its client turned off: what the server logs is what the limiter granted.
 *
 * `registerUrl` is what `--import` takes to load `politely/register`.
 */
export function clientsWith(registerUrl: string): readonly Client[] {
  return [...inProcessClients, { name: "register", ask: (wish) => askByProgram(registerUrl, wish) }];
}

const inProcessClients: readonly Client[] = [
  inProcess("fetch", (polite) => async (url) => {
    const response = await polite.fetch(url);
    await response.text();
    return response.status;
  }),
  inProcess("undici", (polite) => {
    const dispatcher = new Agent().compose(politeInterceptor(polite));
    return async (url) => {
      const { statusCode, body } = await request(url, { dispatcher });
      await body.text();
      return statusCode;
    };
  }),
  inProcess("axios", (polite) => {
    const client = politeAxios(axios.create({ validateStatus: () => true }), polite);
    return async (url) => (await client.get(url)).status;
  }),
  inProcess("got", (polite) => {
    const client = politeGot(got.extend({ retry: { limit: 0 }, throwHttpErrors: false }), polite);
    return async (url) => (await client(url)).statusCode;
  }),
  inProcess("ky", (polite) => {
    const client = politeKy(ky.create({ retry: 0, throwHttpErrors: false }), polite);
    return async (url) => {
      const response = await client(url);
      await response.text();
      return response.status;
    };
  }),
];

/** The URLs of a wish, host by host in turn. */
function* urlsOf({ origins, requestsEach }: Wish): Generator<string> {
  for (let index = 0; index < requestsEach; index++) {
    for (const origin of origins) yield `${origin}/${index}`;
  }
}

function inProcess(name: string, connect: (polite: Limiter) => (url: string) => Promise<number>): Client {
  return {
    name,
    async ask(wish) {
      const polite = politely(wish.policy);
      const heldGrants = countHeldGrants(polite);
      const send = connect(polite);
      // Asking takes time, in which no answer would be heard. So nobody starts before all have asked, other clients included.
      polite.pause(undefined, "1s");
      const answers = [...urlsOf(wish)].map((url) => send(url).then(String, codeOf));
      await setImmediate();
      polite.resume();
      const tally: Record<string, number> = {};
      for (const answer of await Promise.all(answers)) tally[answer] = (tally[answer] ?? 0) + 1;
      await polite.close();
      return { tally, heldGrantCount: heldGrants() };
    },
  };
}

/** Counts, from now on, the grants between a cooldown's begin and its end; the function tells how many there were. */
function countHeldGrants(polite: Limiter): () => number {
  const heldUntilMs = new Map<string, number>();
  let count = 0;
  polite.subscribe((event) => {
    if (event.type === "cooldown") heldUntilMs.set(event.key, event.untilMs);
    if (event.type === "grant" && event.atMs < (heldUntilMs.get(event.key) ?? 0)) count += 1;
  });
  return () => count;
}

/** A program that knows nothing of Politely, run as `node --import politely/register`. */
async function askByProgram(register: string, { policy, origins, requestsEach }: Wish): Promise<Asked> {
  const { code, stdout, stderr } = await runProgram({
    register,
    program: "../../../servers/proof/unchanged.mjs",
    args: [String(requestsEach), ...origins],
    policy,
  });
  if (code !== 0) throw new Error(`The program under politely/register ended with ${code}: ${stderr.slice(-1_000)}`);
  return { tally: JSON.parse(stdout) as Asked["tally"], heldGrantCount: 0 };
}

/** What a failure is called; clients wrap the limiter's error. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ("code" in error) return String(error.code);
  return error.cause === undefined ? String(error) : codeOf(error.cause);
}
