import axios from "axios";
import { describe, expect, it } from "vitest";
import { politeAxios } from "../../src/http/axios/index.js";
import { limit, politely } from "../../src/politely.js";
import { memoryStore } from "../../src/stores/memory.js";
import { VirtualOrigin } from "../../src/testing/virtualOrigin.js";

describe("an adapter with a limiter that has a store", () => {
  it("is paced by it, and reports its answers", async () => {
    const origin = new VirtualOrigin({ limits: [{ kind: "sliding-window", rate: "1/s" }] });
    await using site = await origin.listen();
    const store = memoryStore(() => Math.floor(performance.now() * 1000));
    const policy = { localhost: "limited", default: { rate: "1/100ms", cooldown: "30s" } } as const;
    const limiter = politely(policy, { store });
    const client = politeAxios(axios.create({ validateStatus: () => true }), limiter);
    expect((await client.get(site.url)).status).toBe(200);
    expect((await client.get(site.url)).status).toBe(429);
    const other = politely(policy, { store });
    expect((await other.explain(site.url)).causes[0]).toMatchObject({ limit: "cooldown" });
    await Promise.all([limiter.close(), other.close()]);
    expect(() => politeAxios(axios.create(), limit({ rate: "1/s" }, { store, name: "one" }))).not.toThrow();
  });
});
