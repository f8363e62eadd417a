// Replaces the global dispatcher behind everybody's back. Node's own fetch may read it under another number, so that of the package is asked.
import { Agent, fetch } from "undici";

globalThis[Symbol.for("undici.globalDispatcher.1")] = new Agent();
await (await fetch(process.argv[2])).text();
