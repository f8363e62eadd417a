// Replaces the global dispatcher behind everybody's back.
import { Agent } from "undici";

globalThis[Symbol.for("undici.globalDispatcher.1")] = new Agent();
await (await fetch(process.argv[2])).text();
