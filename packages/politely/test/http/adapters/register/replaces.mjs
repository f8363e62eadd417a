// Sets dispatchers of its own as the global one, and asks in every way at once. One more request goes past them.
import {
  Agent,
  getGlobalDispatcher,
  interceptors,
  RetryAgent,
  request,
  setGlobalDispatcher,
  fetch as undiciFetch,
} from "undici";

setGlobalDispatcher(new Agent({ connections: 8 }));
setGlobalDispatcher(getGlobalDispatcher().compose(interceptors.retry({ minTimeout: 1, throwOnError: false })));
setGlobalDispatcher(new RetryAgent(getGlobalDispatcher()));
const [url] = process.argv.slice(2);
const ways = [
  async () => (await request(url)).body.text(),
  async () => (await undiciFetch(url)).text(),
  async () => (await fetch(url)).text(),
  async () => (await fetch(url, { dispatcher: new Agent() })).text(),
];
const texts = await Promise.all([...ways, ...ways].map((ask) => ask()));
await (await request(url, { dispatcher: new Agent() })).body.text();
console.log(texts.join(" "));
await getGlobalDispatcher().close();
