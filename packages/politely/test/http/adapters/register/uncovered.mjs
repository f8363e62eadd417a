// Asks in ways that a global dispatcher does not see.
import { once } from "node:events";
import { get } from "node:http";
import { Agent, request } from "undici";

const [url, local] = process.argv.slice(2);
for (const each of [url, url, local]) {
  const [response] = await once(get(each), "response");
  await once(response.resume(), "end");
}
await (await request(url, { dispatcher: new Agent({ pipelining: 0 }) })).body.text();
await (await fetch(url)).text();
await (await fetch(local)).text();
