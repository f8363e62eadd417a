// Asks by node:http, axios and node-fetch at once.
import { get } from "node:http";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import axios from "axios";
import nodeFetch from "node-fetch";

const required = createRequire(import.meta.url)("http");
const [here, there] = process.argv.slice(2);
const ended = (ask, url) => new Promise((resolve) => void ask(url, (answer) => resolve(text(answer))));
const texts = await Promise.all([
  ended(get, here),
  ended(required.get, there),
  axios.get(here).then(({ data }) => data),
  nodeFetch(here).then((response) => response.text()),
]);
console.log(texts.join(" "));
