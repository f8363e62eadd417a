import { findPolicy } from "./http/register/findPolicy.js";
import { nodeProcess } from "./http/register/nodeProcess.js";
import { register } from "./http/register/register.js";
import { politely } from "./politely.js";

const node = nodeProcess();
const found = findPolicy(node);
// The list of public suffixes is large, so only a policy that needs it loads it.
if ("policy" in found && found.policy.groupBy === "domain") {
  await import("./http/domains/index.js").catch((cause: unknown) => {
    throw new Error('The policy groups by "domain", which needs the list of public suffixes. Run: npm install tldts', {
      cause,
    });
  });
}
register(node, found, politely);
