import { registerGrouping } from "../../policy/groupings.js";
import { byDomain } from "./registrableDomain.js";

export { byDomain, registrableDomain } from "./registrableDomain.js";

// A policy file cannot hold a function: it says "domain", and this entry brings the function along.
registerGrouping("domain", byDomain);
