// @ts-check
// What the service is held against: the same framework, answering the same question with a constant.
import fastify from "fastify";

const ANSWER = { proceed: true, waitMs: 0 };
const schema = {
  response: { 200: { type: "object", properties: { proceed: { type: "boolean" }, waitMs: { type: "number" } } } },
};

const app = fastify();
app.post("/v1/check", { schema }, async () => ANSWER);
await app.listen({ host: "127.0.0.1", port: 0 });
console.log(`http://127.0.0.1:${app.addresses()[0].port}`);
