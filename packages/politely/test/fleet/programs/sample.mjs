// A member that does next to nothing, in the way its input asks for. The tests of the fleet itself run it.
import { joinFleet, machineUs } from "../member.mjs";

const member = joinFleet();
const { behaviour, everyMs = 2 } = member.input;

if (behaviour === "fails to begin") throw new Error("the sample's own mistake");
if (behaviour === "never ready") setInterval(() => {}, 1_000);
else await work();

async function work() {
  // Loading takes time, and is over before anybody begins.
  const { maxDurationUs } = await member.library("core/rule.js");
  const wish = await member.ready();
  if (behaviour === "crashes") process.exit(3);
  if (behaviour === "babbles") console.log("not an entry");
  if (behaviour === "never ends") setInterval(() => {}, 1_000);
  member.onCommand("say", (data) => member.log({ type: "said", data }));
  member.log({ type: "began", wish, input: member.input, wallMs: Date.now(), ready: maxDurationUs > 0 ? 15 : 0 });
  while (!member.stopping.aborted) {
    const serial = member.start({ key: "k", startedUs: machineUs(), token: 7 });
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    member.release(serial, { releasedUs: machineUs() });
  }
  member.leave();
}
