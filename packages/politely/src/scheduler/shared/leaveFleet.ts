import type { Questions } from "./questions.js";

/** Keys that a process takes leave of, at most, and at once. */
const LEAVE_MOST = 256;
const TOGETHER_MOST = 64;

/**
 * Says that this process has gone, with its policy, at the keys it last came to: it ends, or comes back with another policy.
 *
 * Never rejects: who is not heard is forgotten in time, as one that was killed.
 */
export async function leaveFleet(questions: Questions): Promise<void> {
  const { link, options } = questions.parts;
  const said = questions.takeSaid().slice(-LEAVE_MOST);
  for (let from = 0; from < said.length && !link.isAway; from += TOGETHER_MOST) {
    const some = said.slice(from, from + TOGETHER_MOST);
    const left = some.map((key) => link.send([key], (by) => ({ kind: "leave", ...by, ticket: options.process })));
    if ((await Promise.allSettled(left)).some(({ status }) => status === "rejected")) return;
  }
}
