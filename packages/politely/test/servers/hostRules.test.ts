import { expect, it } from "vitest";
import { politely } from "../../src/index.js";
import { startNginx } from "./nginx.js";
import { hostRules } from "./server.js";

it("makes a policy that limits each host of a server by itself, though all are loopback", async () => {
  await using server = await startNginx({ limits: [{}, {}] });
  const polite = politely({ hosts: hostRules(server, { minDelay: "1h" }) });
  for (const { origin, address } of server.hosts) {
    expect(polite.tryAcquire(`${origin}/a`)?.key).toBe(address);
    expect(polite.tryAcquire(`${origin}/b`)).toBeUndefined();
  }
  expect(polite.tryAcquire("http://127.0.0.9/a")).toBeDefined();
  expect(polite.tryAcquire("http://127.0.0.9/b")).toBeDefined();
  await polite.close();
});
