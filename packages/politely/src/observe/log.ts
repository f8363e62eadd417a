import type { Logger } from "../types.js";
import type { LimiterEvent } from "./types.js";

type EventOf<Type extends LimiterEvent["type"]> = Extract<LimiterEvent, { readonly type: Type }>;

/** The lines of the log. Each is made of the event it is about; times are in milliseconds. */
export interface Messages {
  /** Default `"politely: example.com: waiting 1.5 s (example.com: rate 1/s, 1.5 s to go)"`. */
  readonly waiting?: (event: EventOf<"wait">) => string;
  readonly done?: (event: EventOf<"grant">) => string;
  /** The configuration in one line, at the start and after each change. */
  readonly configured?: (event: EventOf<"configure">) => string;
  /** A host without limits was asked for: `why` is the entry of the policy that says so, `"localhost"` or `"hosts.example.com"`. */
  readonly disabled?: (host: { readonly key: string; readonly why: string }) => string;
  readonly paused?: (event: EventOf<"pause">) => string;
  readonly resumed?: (event: EventOf<"resume">) => string;
  readonly cooldown?: (event: EventOf<"cooldown">) => string;
  readonly retry?: (event: EventOf<"retry">) => string;
  readonly warning?: (event: EventOf<"warn">) => string;
}

const english: Required<Messages> = {
  waiting: ({ key, waitMs, reason }) => `politely: ${key}: waiting ${seconds(waitMs)} (${reason})`,
  done: ({ key, waitedMs }) => `politely: ${key}: done waiting after ${seconds(waitedMs)}`,
  configured: ({ summary }) => `politely: ${summary}`,
  disabled: ({ key, why }) => `politely: ${key}: disabled (${why})`,
  paused: ({ key }) => `politely: ${key}: paused`,
  resumed: ({ key }) => `politely: ${key}: resumed`,
  cooldown: ({ key, untilMs, atMs, because }) =>
    `politely: ${key}: cooling down ${seconds(untilMs - atMs)} after ${because}`,
  retry: ({ key, attempt, attempts, waitMs, because }) =>
    `politely: ${key}: sending again (${attempt} of ${attempts}) in ${seconds(waitMs)} after ${because}`,
  warning: ({ key, message }) => `politely: ${key}: ${message}`,
};

/** The line of each event that has one: how it is written, and what makes it. A permit that expires is told of by a warning as well. */
const lines: Readonly<Partial<Record<LimiterEvent["type"], readonly [level: keyof Logger, line: keyof Messages]>>> = {
  wait: ["debug", "waiting"],
  grant: ["debug", "done"],
  configure: ["info", "configured"],
  pause: ["info", "paused"],
  resume: ["info", "resumed"],
  cooldown: ["warn", "cooldown"],
  retry: ["info", "retry"],
  warn: ["warn", "warning"],
};

/** Writes a log: waits at debug, changes at info, trouble at warn. */
export class Log {
  readonly #messages: Required<Messages>;

  constructor(
    readonly logger: Logger,
    messages: Messages = {},
  ) {
    this.#messages = { ...english, ...messages };
  }

  /** Writes the line of an event, if it has one. Returns what the logger returned, so that a rejection can be caught. */
  readonly hear = (event: LimiterEvent): unknown => {
    const [level, name] = lines[event.type] ?? [];
    if (level === undefined || name === undefined || (event.type === "grant" && event.waitedMs === 0)) return undefined;
    return this.logger[level]?.(this.#messages[name](event as never));
  };

  /** Says that a host has no limits. Never throws. */
  disabled(key: string, why: string): void {
    try {
      const result: unknown = this.logger.info?.(this.#messages.disabled({ key, why }));
      if (result instanceof Promise) result.catch(() => undefined);
    } catch {
      // A logger that throws breaks nothing else.
    }
  }
}

function seconds(ms: number): string {
  return `${Math.round(ms) / 1000} s`;
}
