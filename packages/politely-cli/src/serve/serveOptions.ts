import { UsageError } from "../errors.js";
import type { Io } from "../io.js";
import { countOption, durationOption } from "../policy/optionValues.js";
import type { PolicyFile } from "../policy/policyFile.js";
import { isLoopback } from "./api/guard.js";

/** What was written on the command line of `politely serve`. */
export interface ServeFlags {
  readonly policy?: string;
  readonly host: string;
  /** False with `--no-port`, which takes the proxy away too. */
  readonly port: string | false;
  readonly proxyPort: string;
  /** False with `--no-proxy`. */
  readonly proxy: boolean;
  readonly connectPorts: string;
  readonly socket?: string;
  readonly token?: string;
  readonly allowHost?: readonly string[];
  readonly data?: string;
  readonly share?: string;
  readonly allowWrites?: boolean;
  readonly allowPrivate?: boolean;
  readonly maxWaiting: string;
  readonly grace: string;
  readonly logRequests?: boolean;
}

/** What `politely serve` was asked to do. */
export interface ServeOptions {
  readonly policy: PolicyFile;
  readonly host: string;
  /** Undefined: no TCP, only the Unix socket. 0: any that is free. */
  readonly port: number | undefined;
  /** Undefined: no proxy. */
  readonly proxyPort: number | undefined;
  /** The ports that CONNECT may name. */
  readonly connectPorts: readonly number[];
  /** Path of the Unix socket. */
  readonly socket: string | undefined;
  readonly token: string | undefined;
  readonly allowedHosts: readonly string[];
  readonly data: string | undefined;
  readonly share: string | undefined;
  readonly isWritable: boolean;
  readonly isPrivateAllowed: boolean;
  readonly maxWaiting: number;
  /** How long permits may still be released once it stops, in milliseconds. */
  readonly graceMs: number;
  readonly isLoggingRequests: boolean;
}

const PORTS = { least: 0, most: 65_535 };

/** Reads the flags. Throws `UsageError` where they make no sense, or would open the service to others without a token. */
export function readServeFlags(flags: ServeFlags, io: Pick<Io, "env">): Omit<ServeOptions, "policy"> {
  const token = readToken(flags.token ?? io.env.POLITELY_TOKEN);
  const { host, socket, data, share, allowHost = [] } = flags;
  if (data !== undefined && share !== undefined) throw new UsageError("--data and --share exclude each other.");
  if (flags.port === false && socket === undefined) throw new UsageError("--no-port needs --socket.");
  if (token === undefined && !isLoopback(host)) {
    const advice = "Set POLITELY_TOKEN or --token, or leave --host out.";
    throw new UsageError(`--host ${host} can be reached by others, so callers must know a token. ${advice}`);
  }
  return {
    host,
    port: flags.port === false ? undefined : countOption("--port", flags.port, PORTS),
    proxyPort: flags.proxy && flags.port !== false ? countOption("--proxy-port", flags.proxyPort, PORTS) : undefined,
    connectPorts: flags.connectPorts.split(",").map((port) => countOption("--connect-ports", port.trim(), PORTS)),
    socket,
    token,
    allowedHosts: allowHost.map(readName),
    data,
    share,
    isWritable: flags.allowWrites === true,
    isPrivateAllowed: flags.allowPrivate === true,
    maxWaiting: countOption("--max-waiting", flags.maxWaiting, { least: 1, most: 1_000_000 }),
    graceMs: durationOption("--grace", flags.grace, { least: 0, most: 3_600_000 }),
    isLoggingRequests: flags.logRequests === true,
  };
}

/** The message never shows it. */
function readToken(token: string | undefined): string | undefined {
  if (token === undefined || /^[\x21-\x7e]{8,512}$/.test(token)) return token;
  throw new UsageError(`a token has 8 to 512 printable ASCII characters and no spaces; this one does not.`);
}

function readName(name: string): string {
  if (/^(\[[\da-f:.]+\]|[\w.-]{1,253})$/i.test(name)) return name.toLowerCase();
  throw new UsageError(`--allow-host takes a host name without a port; got "${name}"`);
}
