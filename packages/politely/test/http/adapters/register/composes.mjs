// Builds on the global dispatcher of its own undici, as undici's documentation shows it.
import { Agent, getGlobalDispatcher, interceptors, RetryAgent, request, setGlobalDispatcher } from "undici";

const isOwn = getGlobalDispatcher() instanceof Agent;
setGlobalDispatcher(getGlobalDispatcher().compose(interceptors.retry({ minTimeout: 1, throwOnError: false })));
setGlobalDispatcher(new RetryAgent(getGlobalDispatcher()));
const [url] = process.argv.slice(2);
const texts = await Promise.all([
  fetch(url).then((response) => response.text()),
  request(url).then(({ body }) => body.text()),
  fetch(url).then((response) => response.text()),
]);
console.log(isOwn, texts.join(" "));
