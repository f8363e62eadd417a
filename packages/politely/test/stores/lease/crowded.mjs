// One of a crowd of processes: it opens several stores, and asks each for a lease when it is told to.
import { joinFleet } from "../../fleet/member.mjs";
import { openStore } from "../../fleet/openStore.mjs";

const member = joinFleet();
const { places, ttl } = member.input;
const { exclusive } = await member.library("lease.js");
const opened = new Map();
for (const [name, { kind, address }] of Object.entries(places)) {
  opened.set(name, await openStore(kind, member.library, address, true));
}
member.onCommand("ask", async ({ place, lease }) => {
  const answer = await exclusive(opened.get(place).store, lease, { ttl, label: member.id }).catch((error) => error);
  if (answer instanceof Error) {
    member.log({ type: "failed", lease, message: String(answer), cause: String(answer.cause) });
  } else if (answer.held) {
    member.log({ type: "held", lease });
  } else {
    member.log({ type: "refused", lease, heldBy: answer.heldBy, remainingMs: answer.remainingMs });
  }
});
await member.ready();
await new Promise((resolve) => member.stopping.addEventListener("abort", resolve));
member.leave();
for (const { close } of opened.values()) await close();
