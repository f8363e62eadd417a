import type { Logger } from "../types.js";
import type { LimiterEvent } from "./types.js";

/** Turns events into log lines: waits at debug, changes at info, trouble at warn. */
export function logEvents(logger: Logger): (event: LimiterEvent) => void {
  return (event) => {
    switch (event.type) {
      case "wait":
        logger.debug?.(`politely: ${event.key}: waiting ${seconds(event.waitMs)} (${event.reason})`);
        break;
      case "grant":
        if (event.waitedMs > 0) logger.debug?.(`politely: ${event.key}: done waiting after ${seconds(event.waitedMs)}`);
        break;
      case "configure":
        logger.info?.(`politely: ${event.summary}`);
        break;
      case "pause":
      case "resume":
        logger.info?.(`politely: ${event.key}: ${event.type}d`);
        break;
      case "cooldown":
        logger.warn?.(
          `politely: ${event.key}: cooling down ${seconds(event.untilMs - event.atMs)} after ${event.because}`,
        );
        break;
      case "warn":
        logger.warn?.(`politely: ${event.key}: ${event.message}`);
        break;
      case "expire":
        if (event.what === "permit") {
          logger.warn?.(
            `politely: ${event.key}: a permit was not released in ${seconds(event.afterMs)}, its place is free again`,
          );
        }
        break;
      case "probe":
      case "release":
      case "refuse":
      case "cancel":
      case "evict":
      case "outage":
        break;
    }
  };
}

function seconds(ms: number): string {
  return `${Math.round(ms) / 1000} s`;
}
