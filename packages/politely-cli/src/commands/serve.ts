import type { Command } from "commander";
import type { Io } from "../io.js";
import type { AddCommand } from "../main.js";
import { readServeFlags, type ServeFlags } from "../serve/serveOptions.js";

const EXAMPLES = `
Examples:
  politely serve -p policy.yaml
  curl -s localhost:8787/v1/acquire -H 'content-type: application/json' -d '{"domain":"example.com"}'
  http_proxy=http://127.0.0.1:8788 curl http://example.com/
  politely serve --data limits.db                    limits outlive a restart
  politely serve --share redis://10.0.0.5            several services, one budget
  POLITELY_TOKEN=… politely serve --host 0.0.0.0     for other machines

http://127.0.0.1:8787/ shows what is going on. Ctrl-C lets permits come back for --grace; a second one stops at once.`;

/** `politely serve`. */
export const addServe: AddCommand = (program, io, done) => {
  program
    .command("serve")
    .description("Paces programs in any language: an HTTP API, a proxy, and a page that shows what is going on.")
    .option("-p, --policy <file>", "limits, JSON or YAML (default: politely.json here, else known sites and 1/s)")
    .option("--host <address>", "where to listen; off this machine a token is needed", "127.0.0.1")
    .option("--port <n>", "API and page; 0 takes any that is free", "8787")
    .option("--no-port", "no API on a port and no proxy, only --socket")
    .option("--proxy-port <n>", "the pacing proxy", "8788")
    .option("--no-proxy", "no proxy")
    .option("--connect-ports <list>", "ports that CONNECT may name, with commas between", "443")
    .option("--socket <path>", "listen on a Unix socket too")
    .option("--token <text>", "what callers must send (better: POLITELY_TOKEN, which ps does not show)")
    .option("--allow-host <name...>", "further names under which the service may be called")
    .option("--data <file>", "keep state in a SQLite file (default: in memory)")
    .option("--share <url>", "keep state in redis://…, postgres://… or dynamodb:TABLE, with others")
    .option("--allow-writes", "let callers pause hosts and edit limits without a token")
    .option("--allow-private", "let the proxy call private and local addresses")
    .option("--max-waiting <n>", "callers that may wait at once", "20000")
    .option("--grace <duration>", "how long permits may still come back when it stops", "10s")
    .option("--log-requests", "a line on stderr for each request, with its path")
    .addHelpText("after", EXAMPLES)
    .action(async (_options: unknown, command: Command) => {
      await serve(command.opts<ServeFlags>(), io);
      done(0);
    });
};

async function serve(flags: ServeFlags, io: Io): Promise<void> {
  const options = readServeFlags(flags, io);
  // The framework takes a moment to load, which no other command should wait for.
  const [{ findPolicy }, { runServe }] = await Promise.all([
    import("../policy/policyFile.js"),
    import("../serve/runServe.js"),
  ]);
  const policy = await findPolicy(flags.policy, io.cwd);
  await runServe({ ...options, policy }, io);
}
