import { safeText } from "../view/width.js";
import { broken, type Reading } from "./reading.js";
import { accessStampMs } from "./stamps.js";

/** Who, stamp, request, status, and the rest: the size, and in the combined format the referrer and the user agent. */
const line = /^(\S+(?: \S+){2,6}) \[([^\]]{20,40})\] "((?:[^"\\]|\\.)*)" (\d{3}|-)(?: |$)/;

/** The problem of a line that does not say which site it is about. Only `--host` helps. */
export const noHostProblem = "names no host; say which site's log it is with --host NAME";

/** Tells whether a line is of an Apache or nginx access log, common or combined, with or without the virtual host in front. */
export function isAccessLine(text: string): boolean {
  return line.test(text);
}

/**
 * Makes a reader of access log lines.
 *
 * The host is `host` where given, else the virtual host in front of the line, else that of a request line with a whole URL, as
 * proxies log it. The stamp is any moment of its second.
 */
export function accessLineReader(host: string | undefined): (text: string) => Reading {
  // Many lines share a stamp, and most of them share the host.
  let lastStamp = "";
  let lastMs = Number.NaN;
  return (text) => {
    const match = line.exec(text);
    if (match === null) return broken("is no line of an access log (combined format)");
    const [, who, stamp, request, status] = match;
    if (stamp !== lastStamp) {
      lastStamp = stamp;
      lastMs = accessStampMs(stamp);
    }
    if (Number.isNaN(lastMs)) return broken(`has a stamp that is no time: [${safeText(stamp)}]`);
    const target = host ?? virtualHost(who) ?? hostOfRequest(request);
    if (target === undefined) return broken(noHostProblem);
    const startedAtMs = [lastMs, lastMs + 1000] as const;
    const entry = { host: target, startedAtMs, status: status === "-" ? undefined : Number(status) };
    return { kind: "requests", entries: [entry] };
  };
}

/** The virtual host that some formats put in front of the client's address: without it the second word is the client's identity, nearly always `-`. */
function virtualHost(who: string): string | undefined {
  const words = who.split(" ");
  return words.length >= 4 && words[1] !== "-" ? words[0] : undefined;
}

function hostOfRequest(request: string): string | undefined {
  return /^[A-Z]+ https?:\/\/([^/?# ]+)/i.exec(request)?.[1];
}
