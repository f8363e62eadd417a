import { type PolicyInput, politely } from "politely";
import { inOrder, type ParsedFile, type PlacedProblem } from "../policy/inspectPolicy.js";
import { pathInFile } from "./domainsFile.js";

/** Lists what is allowed in a policy and still worth a look, each with its place: what a limiter tells its logger. */
export function warningsOf(policy: PolicyInput, file: ParsedFile): readonly PlacedProblem[] {
  const warnings: PlacedProblem[] = [];
  const limiter = politely();
  limiter.subscribe((event) => {
    if (event.type !== "warn") return;
    const { message } = event;
    const path = pathInFile(file, event.key);
    warnings.push({ ...file.place(path, message), path, message });
  });
  limiter.configure(policy);
  return inOrder(warnings);
}
