// @ts-check
import { acquire } from "./acquire.mjs";
import { command } from "./command.mjs";
import { fetchOverhead } from "./fetch.mjs";
import { fleet } from "./fleet.mjs";
import { headers } from "./headers.mjs";
import { hosts } from "./hosts.mjs";
import { memory } from "./memory.mjs";
import { newHost } from "./newHost.mjs";
import { pacing } from "./pacing.mjs";
import { redis } from "./redis.mjs";
import { run } from "./run.mjs";
import { service } from "./service.mjs";
import { stores } from "./stores.mjs";
import { tryacquire } from "./tryacquire.mjs";
import { waiters } from "./waiters.mjs";
import { window } from "./window.mjs";

/** @type {readonly import("./types.d.ts").Measure[]} */
export const measures = [
  tryacquire,
  hosts,
  newHost,
  acquire,
  run,
  memory,
  waiters,
  window,
  pacing,
  fetchOverhead,
  headers,
  redis,
  stores,
  fleet,
  command,
  service,
];
