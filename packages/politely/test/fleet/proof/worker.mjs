// A process of a proof. Its input says which store it opens; see work.mjs for the rest.
import { joinFleet } from "../member.mjs";
import { openStore } from "../openStore.mjs";
import { work } from "./work.mjs";

const member = joinFleet();
const { kind, address } = member.input;
await work(member, await openStore(kind, member.library, address));
