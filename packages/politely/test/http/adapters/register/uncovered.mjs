// Asks in ways that a global dispatcher does not see, and in one that no agent sees either.
import { once } from "node:events";
import { get } from "node:http";
import { connect } from "node:net";
import { Agent, request } from "undici";

const [url, local] = process.argv.slice(2);
const ownWay = { createConnection: connect };
for (const [each, options] of [[url], [url], [url, ownWay], [local], [local, ownWay]]) {
  const [response] = await once(get(each, options ?? {}), "response");
  await once(response.resume(), "end");
}
await (await request(url, { dispatcher: new Agent({ pipelining: 0 }) })).body.text();
await (await fetch(url)).text();
await (await fetch(local)).text();
