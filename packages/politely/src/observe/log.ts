import type { Logger } from "../types.js";
import type { LimiterEvent } from "./types.js";

/** Turns events into log lines: waits at debug, changes at info, trouble at warn. Returns what the logger returned, so that a rejection can be caught. */
export function logEvents(logger: Logger): (event: LimiterEvent) => unknown {
  return (event) => {
    switch (event.type) {
      case "wait":
        return logger.debug?.(`politely: ${event.key}: waiting ${seconds(event.waitMs)} (${event.reason})`);
      case "grant":
        if (event.waitedMs === 0) return undefined;
        return logger.debug?.(`politely: ${event.key}: done waiting after ${seconds(event.waitedMs)}`);
      case "configure":
        return logger.info?.(`politely: ${event.summary}`);
      case "pause":
      case "resume":
        return logger.info?.(`politely: ${event.key}: ${event.type}d`);
      case "cooldown": {
        const held = seconds(event.untilMs - event.atMs);
        return logger.warn?.(`politely: ${event.key}: cooling down ${held} after ${event.because}`);
      }
      case "retry": {
        const which = `${event.attempt} of ${event.attempts}`;
        return logger.info?.(
          `politely: ${event.key}: sending again (${which}) in ${seconds(event.waitMs)} after ${event.because}`,
        );
      }
      case "warn":
        return logger.warn?.(`politely: ${event.key}: ${event.message}`);
      // A permit that expires is told of by a warning as well.
      case "expire":
      case "probe":
      case "release":
      case "refuse":
      case "cancel":
      case "evict":
      case "outage":
        return undefined;
    }
  };
}

function seconds(ms: number): string {
  return `${Math.round(ms) / 1000} s`;
}
