import axios from "axios";
import got from "got";
import { describe, expect, it } from "vitest";
import { politeAxios } from "../../../src/http/axios/index.js";
import { politeGot } from "../../../src/http/got/index.js";
import type { NodeProcess } from "../../../src/http/register/nodeProcess.js";
import { register } from "../../../src/http/register/register.js";
import { type Limiter, politely } from "../../../src/index.js";
import { inHttpWorld } from "../../../src/testing/httpWorld.js";

const lines: string[] = [];
let exit: (() => void) | undefined;
/** This process, as far as it may be changed by a test. */
const pretended = {
  env: {},
  once: (_event: string, listener: () => void) => {
    exit = listener;
  },
  getBuiltinModule: (name: string) =>
    name === "node:fs"
      ? { writeSync: (_descriptor: number, line: string) => lines.push(line) }
      : process.getBuiltinModule(name),
} as unknown as NodeProcess;

describe("politely/register, where the program has limiters of its own,", () => {
  it("leaves to them what they pace, and counts none of it", async () => {
    let registered: Limiter | undefined;
    register(pretended, { policy: { localhost: "limited" }, origin: "a test" }, (policy) => {
      registered = politely(policy);
      return registered;
    });
    await inHttpWorld(
      {
        makeLimiter: politely,
        makeClient: (limiter) => ({
          axios: politeAxios(axios.create(), limiter),
          got: politeGot(got, limiter),
        }),
        policy: (a, b) => ({ hosts: { [a]: { minDelay: 1 }, [b]: { minDelay: 1 } } }),
      },
      async ({ client, limiter, a, b }) => {
        a.answer = (_request, answer) => {
          answer.writeHead(302, { location: b.origin });
          answer.end();
        };
        expect((await client.axios.get<string>(a.origin)).data).toBe("/");
        expect(await client.got(a.origin).text()).toBe("/");
        expect([limiter.stats(a.key)?.granted, limiter.stats(b.key)?.granted]).toEqual([2, 2]);
        expect(registered?.stats()).toEqual([]);
        expect((await axios.get<string>(b.origin)).data).toBe("/");
        expect(registered?.stats()).toMatchObject([{ granted: 1 }]);
      },
    );
    exit?.();
    expect(lines).toEqual(["politely: 1 request to 1 host paced (a test), waited 0.0 s in all\n"]);
  });
});
