// @ts-check
// What the service is held against: the same framework, answering the same question with a constant, and a question to wait by a plain timer.
import { setTimeout as afterMs } from "node:timers/promises";
import fastify from "fastify";

/** 100 callers that wait so long are told 1,000 times a second. */
const HELD_MS = 99;

const ANSWER = { proceed: true, waitMs: 0 };
const schema = {
  response: { 200: { type: "object", properties: { proceed: { type: "boolean" }, waitMs: { type: "number" } } } },
};

const app = fastify();
app.post("/v1/check", { schema }, async () => ANSWER);
app.post("/v1/acquire", async () => {
  const askedAtMs = performance.now();
  await afterMs(HELD_MS);
  return { permit: "one", waitedMs: performance.now() - askedAtMs };
});
app.post("/v1/release", (_request, reply) => reply.code(204).send());
await app.listen({ host: "127.0.0.1", port: 0 });
console.log(`http://127.0.0.1:${app.addresses()[0].port}`);
