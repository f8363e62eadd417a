// A process that asks for a lease when it is told to go, says what it got, and keeps it until it is told otherwise.
import { joinFleet } from "../../fleet/member.mjs";
import { openStore } from "../../fleet/openStore.mjs";

const member = joinFleet();
const { kind, address, name, ttl, wait = 0, leaves = false } = member.input;
const [{ exclusive }, { store, close }] = await Promise.all([
  member.library("lease.js"),
  openStore(kind, member.library, address),
]);
await member.ready();
const answer = await exclusive(store, name, { ttl, wait, label: member.id }).catch((error) => error);
if (answer instanceof Error) {
  member.log({ type: "failed", message: String(answer), cause: String(answer.cause) });
} else if (answer.held) {
  const { token, signal } = answer;
  member.log({ type: "held", token });
  signal.addEventListener("abort", () => member.log({ type: "lost", loss: signal.reason.loss }));
  member.onCommand("look", () => member.log({ type: "looked", aborted: signal.aborted, loss: signal.reason?.loss }));
  member.onCommand("release", () => void answer.release().then(() => member.log({ type: "released" })));
} else {
  member.log({ type: "refused", heldBy: answer.heldBy, remainingMs: answer.remainingMs });
}
if (!leaves) await new Promise((resolve) => member.stopping.addEventListener("abort", resolve));
member.leave();
await close();
