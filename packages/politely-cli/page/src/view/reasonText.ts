/** The time left at the end of a reason: `, 6.5 s to go`. */
const LEFT = /, [\d.,]+ (ms|s|min|h|d)( \d+ (s|min|h))? to go$/;

/** Why a host waits, without its name and the time left, which stand beside it and count down there. */
export function reasonText(domain: string, reason: string): string {
  const own = reason.startsWith(`${domain}: `) ? reason.slice(domain.length + 2) : reason;
  return own.replace(LEFT, "");
}
