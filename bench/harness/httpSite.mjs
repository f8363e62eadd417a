// @ts-check
// A small site in a process of its own. It says its port to its parent and ends with it.
import { createServer } from "node:http";

const BODY = "A page of a few words, as an interface would answer.\n";

const server = createServer((_request, response) => {
  response.setHeader("content-type", "text/plain");
  response.setHeader("content-length", String(BODY.length));
  response.setHeader("cache-control", "no-store");
  response.setHeader("etag", '"1"');
  response.end(BODY);
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address !== null && typeof address === "object") process.send?.(address.port);
});
process.on("disconnect", () => process.exit());
