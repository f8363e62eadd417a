import { expect, it } from "vitest";
import { Fleet } from "./fleet.js";

it("keeps the limits of an intent for a host beyond maxKeys, each host its own", async () => {
  const fleet = new Fleet();
  const open = { rate: "100/s", burst: 100 } as const;
  const policy = {
    default: open,
    hosts: {
      "a.org": { rate: "1/h" },
      "b.org": { ...open, intents: { search: { rate: "1/h" } } },
      "c.org": { ...open, intents: { search: { rate: "100/s", burst: 100 } } },
    },
  } as const;
  const limiter = fleet.add(policy, { maxKeys: 1 });
  // It owes an hour, so that its row stays.
  await fleet.now(limiter.tryAcquire("a.org"));
  const starts = async (host: string): Promise<boolean[]> => {
    const tried: boolean[] = [];
    for (let index = 0; index < 2; index++) {
      tried.push((await fleet.now(limiter.tryAcquire({ host, intent: "search" }))) !== undefined);
    }
    return tried;
  };
  expect(await starts("b.org")).toEqual([true, false]);
  expect(await starts("c.org")).toEqual([true, true]);
});

it("counts and tells of whoever is refused since there is no room for its host", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ rate: "1/h" }, { maxKeys: 1 });
  await fleet.now(limiter.tryAcquire("a.org"));
  const codes: string[] = [];
  limiter.subscribe((event) => {
    if (event.type === "refuse") codes.push(event.code);
  });
  await expect(fleet.now(limiter.tryAcquire("b.org"))).rejects.toMatchObject({ code: "POLITELY_CAPACITY" });
  expect(codes).toEqual(["POLITELY_CAPACITY"]);
  const all = await fleet.now(limiter.stats());
  expect(all.map(({ host, refused }) => [host, refused])).toEqual([
    ["a.org", 0],
    ["*", 1],
  ]);
});
