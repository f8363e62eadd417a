// The same through the global dispatcher of undici, in CommonJS.
const { request } = require("undici");

const urls = process.argv.slice(2);
void Promise.all(urls.map(async (url) => (await request(url)).body.text())).then((texts) =>
  console.log(texts.join(" ")),
);
