import { normal } from "./random.js";
import type { LatencyRule } from "./rules.js";

/** How long a site takes for one request after another. */
export interface LatencyModel {
  /** Milliseconds, in whole microseconds, from `readyAtMs` until the answer's headers go out. */
  nextMs(readyAtMs: number): number;
}

/** Makes a model that draws from `random`. The numbers drawn depend on the order of the calls only. */
export function createLatency(rule: LatencyRule, random: () => number): LatencyModel {
  if (rule.kind !== "queue") return { nextMs: () => drawMs(rule, random) };
  const { service, workers } = rule;
  const freeAtMs = Array.from({ length: workers }, () => Number.NEGATIVE_INFINITY);
  return {
    nextMs(readyAtMs) {
      let first = 0;
      for (let worker = 1; worker < workers; worker += 1) if (freeAtMs[worker] < freeAtMs[first]) first = worker;
      freeAtMs[first] = Math.max(readyAtMs, freeAtMs[first]) + drawMs(service, random);
      return freeAtMs[first] - readyAtMs;
    },
  };
}

function drawMs(rule: Exclude<LatencyRule, { kind: "queue" }>, random: () => number): number {
  switch (rule.kind) {
    case "fixed":
      return rule.ms;
    case "uniform":
      return wholeUs(rule.minMs + random() * (rule.maxMs - rule.minMs));
    case "log-normal":
      return wholeUs(Math.min(rule.maxMs, rule.medianMs * Math.exp(rule.sigma * normal(random))));
  }
}

function wholeUs(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
